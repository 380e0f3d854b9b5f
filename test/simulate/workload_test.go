package simulate

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/yaml"

	"swiftlet/internal/pod"
	"swiftlet/test/fakeapi"
)

// workload creates, changes and deletes pods, and breaks things.
type workload struct {
	*node
	r      *rand.Rand
	pods   []string // of the API server, in the order of their creation
	static map[string]string
	next   int
	// uncertain pods may end in several ways.
	uncertain map[string]bool
	evicted   map[string]bool
}

func newWorkload(n *node) *workload {
	return &workload{node: n, r: n.roll("workload"), static: map[string]string{}, uncertain: map[string]bool{}, evicted: map[string]bool{}}
}

// operation is something that happens to the node.
type operation struct {
	weight int
	do     func(*workload)
}

var operations = []operation{
	{30, (*workload).createPod}, {16, (*workload).deletePod}, {3, (*workload).forgetPod},
	{8, (*workload).exitContainer}, {4, (*workload).killSandbox}, {4, (*workload).makeSick},
	{4, (*workload).changeImage}, {4, (*workload).resize}, {6, (*workload).changeObject},
	{8, (*workload).changeManifests}, {3, (*workload).overfill},
	{6, (*workload).killAgent}, {3, (*workload).restartRuntime}, {6, (*workload).disturbEvents},
	{4, (*workload).cutAPI}, {4, (*workload).disturbWatches},
}

// run does random operations at random times.
func (w *workload) run() {
	total := 0
	for _, o := range operations {
		total += o.weight
	}
	pause := w.profile.duration / time.Duration(w.profile.operations)
	w.createPod()
	for range w.profile.operations {
		time.Sleep(between(w.r, time.Millisecond, pick(w.r, time.Second, pause, 2*pause)))
		i := w.r.IntN(total)
		for _, o := range operations {
			if i -= o.weight; i < 0 {
				o.do(w)
				break
			}
		}
	}
}

const maxPods = 6

func (w *workload) createPod() {
	if len(w.pods) >= maxPods {
		w.deletePod()
		return
	}
	p := w.newPod(fmt.Sprintf("pod%d", w.next))
	w.next++
	w.add("world: create %s: %s", p.Name, describe(w.node, p))
	w.store(p)
}

// store adds a pod to the API server.
func (w *workload) store(p *v1.Pod) {
	w.pods = append(w.pods, p.Name)
	w.edit(p.Name, func(stored *v1.Pod) error {
		stored.Spec, stored.Labels = p.Spec, p.Labels
		pod.Default(stored)
		stored.Spec.NodeName = nodeName
		stored.Generation = 1
		stored.Status = v1.PodStatus{Phase: v1.PodPending, QOSClass: pod.QOS(stored)}
		return nil
	})
}

func (w *workload) edit(name string, edit func(*v1.Pod) error) {
	if err := fakeapi.Edit(w.api, v1.NamespaceDefault, name, edit); err != nil && err != errSkip {
		w.t.Errorf("change pod %s: %v", name, err)
	}
}

var errSkip = fmt.Errorf("no change")

// anyPod returns a random pod of the API server, nil if there is none.
func (w *workload) anyPod() *v1.Pod {
	var all []*v1.Pod
	for _, p := range fakeapi.List[v1.Pod](w.api) {
		if !pod.IsMirror(p) && p.DeletionTimestamp == nil {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return pick(w.r, all...)
}

func (w *workload) deletePod() {
	p := w.anyPod()
	if p == nil {
		return
	}
	grace := pick(w.r, *p.Spec.TerminationGracePeriodSeconds, *p.Spec.TerminationGracePeriodSeconds, 1, 60)
	w.add("world: delete %s with a grace period of %ds", p.Name, grace)
	w.deleteWith(p.Name, grace)
}

func (w *workload) deleteWith(name string, grace int64) {
	w.edit(name, func(p *v1.Pod) error {
		if p.UID == "" || p.DeletionTimestamp != nil {
			return errSkip
		}
		p.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(time.Duration(grace) * time.Second)}
		p.DeletionGracePeriodSeconds = &grace
		p.Generation++
		return nil
	})
	w.drop(name)
}

func (w *workload) drop(name string) {
	for i, one := range w.pods {
		if one == name {
			w.pods = append(w.pods[:i:i], w.pods[i+1:]...)
			return
		}
	}
}

// forgetPod deletes a pod's object at once, with kubectl delete --force.
func (w *workload) forgetPod() {
	if p := w.anyPod(); p != nil {
		w.add("world: force-delete %s", p.Name)
		fakeapi.Remove[v1.Pod](w.api, p.Namespace, p.Name)
		w.drop(p.Name)
	}
}

// anyRunning returns a random running container of a main container, nil if there is none.
func (w *workload) anyRunning() (*v1.Pod, *runtimeapi.ContainerStatus) {
	p := w.anyPod()
	if p == nil {
		return nil, nil
	}
	container := pick(w.r, p.Spec.Containers...).Name
	for _, c := range w.runtime.Containers() {
		if c.State == runtimeapi.ContainerState_CONTAINER_RUNNING && podOf(c.Labels) == (key{string(p.UID), container}) {
			return p, c
		}
	}
	return nil, nil
}

func (w *workload) exitContainer() {
	p, c := w.anyRunning()
	if c == nil {
		return
	}
	code := int32(pick(w.r, 0, 1, 137))
	if p.Spec.RestartPolicy == v1.RestartPolicyNever || p.Spec.RestartPolicy == v1.RestartPolicyOnFailure && code == 0 {
		w.uncertain[p.Name] = true
	}
	w.world.exit(c.Id, code)
}

func (w *workload) killSandbox() {
	p := w.anyPod()
	if p == nil {
		return
	}
	for _, s := range w.runtime.Sandboxes() {
		if s.Metadata.Uid == string(p.UID) && s.State == runtimeapi.PodSandboxState_SANDBOX_READY {
			w.add("world: sandbox of %s dies", p.Name)
			for _, c := range containersOf(p) {
				w.world.cause(key{string(p.UID), c.Name}, 1)
			}
			if p.Spec.RestartPolicy != v1.RestartPolicyAlways {
				w.uncertain[p.Name] = true
			}
			w.runtime.KillSandbox(s.Id)
		}
	}
}

// makeSick makes the probes of a container fail for some time.
func (w *workload) makeSick() {
	p := w.anyPod()
	if p == nil {
		return
	}
	c := pick(w.r, p.Spec.Containers...)
	if c.ReadinessProbe == nil && c.LivenessProbe == nil && c.StartupProbe == nil {
		return
	}
	w.add("world: %s/%s is sick", p.Name, c.Name)
	for _, all := range containersOf(p) {
		w.world.cause(key{string(p.UID), all.Name}, 1000)
	}
	if p.Spec.RestartPolicy == v1.RestartPolicyNever {
		w.uncertain[p.Name] = true
	}
	w.world.change(p.Name, c.Name, func(b *behaviour) { b.sick = true })
	time.Sleep(between(w.r, time.Second, 3*time.Minute))
	w.world.change(p.Name, c.Name, func(b *behaviour) { b.sick = false })
	w.add("world: %s/%s is well", p.Name, c.Name)
}

func (w *workload) changeImage() {
	p := w.anyPod()
	if p == nil {
		return
	}
	name := pick(w.r, p.Spec.Containers...).Name
	w.edit(p.Name, func(p *v1.Pod) error {
		for i := range p.Spec.Containers {
			c := &p.Spec.Containers[i]
			if c.Name != name {
				continue
			}
			if c.Image == "app:1" {
				c.Image = "app:2"
			} else {
				c.Image = "app:1"
			}
			p.Generation++
			w.add("world: %s/%s has image %s", p.Name, name, c.Image)
			w.world.cause(key{string(p.UID), name}, 1)
		}
		return nil
	})
	w.uncertain[p.Name] = w.uncertain[p.Name] || p.Spec.RestartPolicy != v1.RestartPolicyAlways
}

// resize changes the CPU of a container in place.
func (w *workload) resize() {
	p := w.anyPod()
	if p == nil {
		return
	}
	amount := resource.MustParse(pick(w.r, "10m", "20m", "30m"))
	w.edit(p.Name, func(p *v1.Pod) error {
		c := &p.Spec.Containers[0]
		if c.Resources.Requests.Cpu().IsZero() {
			return errSkip
		}
		c.Resources = *c.Resources.DeepCopy()
		c.Resources.Requests[v1.ResourceCPU] = amount
		p.Generation++
		w.add("world: %s/%s gets %s of CPU", p.Name, c.Name, amount.String())
		return nil
	})
}

// changeObject changes a ConfigMap or a Secret.
func (w *workload) changeObject() {
	i, text := w.r.IntN(2), fmt.Sprint(w.r.IntN(1000))
	var err error
	if often(w.r, 0.5) {
		err = fakeapi.Edit(w.api, v1.NamespaceDefault, fmt.Sprintf("config%d", i), func(c *v1.ConfigMap) error { c.Data = map[string]string{"key": text}; return nil })
	} else {
		err = fakeapi.Edit(w.api, v1.NamespaceDefault, fmt.Sprintf("secret%d", i), func(s *v1.Secret) error { s.Data = map[string][]byte{"key": []byte(text)}; return nil })
	}
	if err != nil {
		w.t.Error(err)
	}
}

// changeManifests adds, replaces or removes a static pod.
func (w *workload) changeManifests() {
	name := fmt.Sprintf("static%d", w.r.IntN(2))
	if w.static[name] != "" && often(w.r, 0.5) {
		w.add("world: remove manifest %s", name)
		w.removeManifest(name)
		return
	}
	p := w.newPod(name)
	p.Spec.Volumes, p.Spec.ServiceAccountName = nil, "" // a static pod uses no objects of the API server
	for i := range p.Spec.Containers {
		p.Spec.Containers[i].VolumeMounts, p.Spec.Containers[i].EnvFrom = nil, nil
	}
	w.add("world: manifest %s: %s", name, describe(w.node, p))
	w.writeManifest(p)
}

// writeManifest adds or replaces a static pod.
func (w *workload) writeManifest(p *v1.Pod) {
	p.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	p.Labels = map[string]string{"revision": fmt.Sprint(w.next)}
	w.next++
	w.static[p.Name] = p.Labels["revision"]
	text, err := yaml.Marshal(p)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.withDisk(func(live string) error {
		hidden := filepath.Join(live, "manifests", "."+p.Name)
		if err := os.WriteFile(hidden, text, 0o600); err != nil {
			return err
		}
		return os.Rename(hidden, filepath.Join(live, "manifests", p.Name+".yaml"))
	}); err != nil {
		w.t.Error(err)
	}
}

func (w *workload) removeManifest(name string) {
	delete(w.static, name)
	if err := w.withDisk(func(live string) error { return os.Remove(filepath.Join(live, "manifests", name+".yaml")) }); err != nil {
		w.t.Error(err)
	}
}

// overfill writes more to an emptyDir than it may have.
func (w *workload) overfill() {
	p := w.anyPod()
	if p == nil {
		return
	}
	for _, v := range p.Spec.Volumes {
		if v.EmptyDir == nil || v.EmptyDir.SizeLimit == nil {
			continue
		}
		err := w.withDisk(func(live string) error {
			dir := filepath.Join(live, "kubelet", "pods", string(p.UID), "volumes", "kubernetes.io~empty-dir", v.Name)
			if _, err := os.Stat(dir); err != nil {
				return errSkip
			}
			return os.WriteFile(filepath.Join(dir, "file"), make([]byte, 2*v.EmptyDir.SizeLimit.Value()), 0o600)
		})
		if err == nil {
			w.add("world: %s overfills its volume", p.Name)
			w.uncertain[p.Name] = true
		}
	}
}

// describe says what is special about a pod.
func describe(n *node, p *v1.Pod) string {
	text := string(p.Spec.RestartPolicy)
	for _, c := range containersOf(p) {
		b := n.world.behaviours[p.Name+"/"+c.Name]
		text += fmt.Sprintf(" %s(%s", c.Name, c.Image)
		if b != nil && b.exits != 0 {
			text += fmt.Sprintf(" exits %d after %v, %d times", b.code, b.after, b.exits)
		}
		if c.LivenessProbe != nil || c.ReadinessProbe != nil || c.StartupProbe != nil {
			text += " probed"
		}
		if c.Lifecycle != nil {
			text += " hooks"
		}
		text += ")"
	}
	return text
}

func containersOf(p *v1.Pod) []v1.Container {
	return append(append([]v1.Container{}, p.Spec.InitContainers...), p.Spec.Containers...)
}
