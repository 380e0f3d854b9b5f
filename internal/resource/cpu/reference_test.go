package cpu

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"swiftlet/internal/resource/numa"
	"swiftlet/internal/resource/topology"
	"swiftlet/internal/resource/topology/sample"
)

var requestsFile = flag.String("ask", "", "write the requests for the reference kubelet to this file")

// recording is a sequence of pods on a machine, and the CPUs that the reference kubelet v1.37.1
// allocated to them, recorded by test/reference/cpus.
type recording struct {
	Machine  string
	Options  []string `json:",omitempty"`
	Reserved string   `json:",omitempty"` // these CPUs, or
	Count    int      `json:",omitempty"` // so many
	Chosen   string   // the reserved CPUs, or why there are none
	Steps    []*step
}

// step adds a pod, or removes it if it has no requests.
type step struct {
	Pod  string
	Asks []*request `json:",omitempty"`
}

// request is a container's request.
type request struct {
	Kind  string `json:",omitempty"` // init, sidecar or a usual one
	CPUs  int
	Nodes uint64 `json:",omitempty"` // the hint's NUMA nodes, as bits
	Hints string `json:",omitempty"`
	Got   string // CPUs, or an error
}

// TestReference compares the CPUs and hints of many pods with the reference kubelet's. They are
// equal with these exceptions:
//
//   - If cores have different numbers of threads, as on hybrid machines or with offline CPUs,
//     the reference assumes the average, and allocates CPUs that are reserved or allocated to
//     others. The test skips such machines, and checks that the recording shows this.
//   - With full-pcpus-only the reference ignores the reusable CPUs of a pod's init containers,
//     and rejects pods that would fit. The test treats them as rejected.
//   - With full-pcpus-only the reference allocates parts of cores if a part of a core is
//     reserved. The recording contains no such request.
func TestReference(t *testing.T) {
	if *requestsFile != "" {
		writeRequests(t)
		return
	}
	text, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var runs []*recording
	if err := json.Unmarshal(text, &runs); err != nil {
		t.Fatal(err)
	}
	compared, count, wrong := map[string]bool{}, 0, map[string]int{}
	for i, r := range runs {
		if uneven(machine(t, r.Machine)) {
			wrong[r.Machine] += r.countConflicts(t)
			continue
		}
		compared[r.Machine] = true
		t.Run(fmt.Sprintf("%d %s %s", i, r.Machine, strings.Join(r.Options, ",")), func(t *testing.T) { count += r.replay(t) })
	}
	t.Logf("%d requests on %d machines have equal results", count, len(compared))
	for name, times := range wrong {
		if t.Logf("%s: the reference allocated CPUs that were not free %d times", name, times); times == 0 {
			t.Errorf("%s: need not be skipped", name)
		}
	}
	if len(compared)+len(wrong) != len(sample.All()) {
		t.Errorf("the recording has %d machines, there are %d", len(compared)+len(wrong), len(sample.All()))
	}
}

// uneven reports whether the machine's cores have different numbers of threads.
func uneven(m *topology.Machine) bool {
	return len(m.CPUs) != m.ThreadsPerCore()*m.Count(topology.ByCore)
}

// countConflicts counts the requests for which the reference allocated CPUs that are reserved or
// allocated to another pod.
func (r *recording) countConflicts(t *testing.T) (times int) {
	reserved := set(t, r.Chosen)
	allocated := map[string]cpuset.CPUSet{}
	for _, x := range r.Steps {
		others := reserved
		for pod, cpus := range allocated {
			if pod != x.Pod {
				others = others.Union(cpus)
			}
		}
		allocated[x.Pod] = cpuset.New()
		for _, a := range x.Asks {
			if strings.HasPrefix(a.Got, "error: ") { // the pod is rejected
				allocated[x.Pod] = cpuset.New()
				break
			}
			got := set(t, a.Got)
			allocated[x.Pod] = allocated[x.Pod].Union(got)
			if !got.Intersection(others).IsEmpty() {
				times++
			}
		}
	}
	return times
}

// replay compares until the first difference, after which the states diverge. It returns the
// number of requests.
func (r *recording) replay(t *testing.T) (count int) {
	m := machine(t, r.Machine)
	options := map[string]string{}
	for _, o := range r.Options {
		options[o] = "true"
	}
	o, err := ParseOptions(options, AllowedOptions{Alpha: true, Beta: true})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := newStaticPolicy(m, o, set(t, r.Reserved), r.Count, false)
	if strings.HasPrefix(r.Chosen, "error: ") {
		if err == nil {
			t.Errorf("no error, want %s", r.Chosen)
		}
		return 0
	}
	if err != nil || rules.reserved.String() != r.Chosen {
		t.Fatalf("%s are reserved (%v), want %s", rules.reserved, err, r.Chosen)
	}
	s := State{Shared: rules.sharedPool()}
	for _, step := range r.Steps {
		if s = step.replay(t, rules, s); t.Failed() {
			break
		}
		count += len(step.Asks)
	}
	return count
}

func (x *step) replay(t *testing.T, r staticPolicy, s State) State {
	p := x.pod()
	for i, a := range x.Asks {
		c := containerNamed(p, fmt.Sprint("c", i))
		if got := hintText(r.hints(s, p, c)[resourceName]); got != a.Hints {
			t.Errorf("pod %s, container %d of %d CPUs: hints are %s, want %s; shared are %s", x.Pod, i, a.CPUs, got, a.Hints, s.Shared)
		}
		next, err := r.allocate(s, p, c, numa.Hint{Nodes: numa.Nodes(a.Nodes)})
		got := next.Containers[p.UID][c.Name].String()
		if err != nil {
			got = "error: " + err.Error()
		}
		if r.options.FullCores && !r.reusable(s, p).IsEmpty() && strings.Contains(a.Got, "not enough free physical CPUs") {
			return s.withoutPod(p.UID)
		}
		if got != a.Got {
			t.Errorf("pod %s, container %d of %d CPUs near %b: %s, want %s; shared are %s", x.Pod, i, a.CPUs, a.Nodes, got, a.Got, s.Shared)
		}
		if err != nil {
			return s.withoutPod(p.UID)
		}
		s = next
	}
	if len(x.Asks) == 0 {
		s = s.withoutPod(p.UID)
	}
	return s
}

// pod returns a Guaranteed pod.
func (x *step) pod() *v1.Pod {
	p := &v1.Pod{}
	p.Name, p.UID = x.Pod, types.UID(x.Pod)
	for i, a := range x.Asks {
		amounts := v1.ResourceList{v1.ResourceCPU: *resource.NewQuantity(int64(a.CPUs), resource.DecimalSI), v1.ResourceMemory: resource.MustParse("1Mi")}
		c := v1.Container{Name: fmt.Sprint("c", i), Resources: v1.ResourceRequirements{Requests: amounts, Limits: amounts}}
		switch a.Kind {
		case "sidecar":
			always := v1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
			fallthrough
		case "init":
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		default:
			p.Spec.Containers = append(p.Spec.Containers, c)
		}
	}
	return p
}

func containerNamed(p *v1.Pod, name string) *v1.Container {
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		if i := slices.IndexFunc(list, func(c v1.Container) bool { return c.Name == name }); i >= 0 {
			return &list[i]
		}
	}
	return nil
}

// hintText formats the bits of each hint, with ! if it is preferred; a checksum if there are many.
func hintText(hints []numa.Hint) string {
	hints = slices.Clone(hints)
	slices.SortFunc(hints, func(a, b numa.Hint) int { return int(a.Nodes) - int(b.Nodes) })
	var words []string
	for _, h := range hints {
		word := fmt.Sprint(uint64(h.Nodes))
		if h.Preferred {
			word += "!"
		}
		words = append(words, word)
	}
	joined := strings.Join(words, " ")
	if len(words) > 15 {
		sum := fnv.New64a()
		_, _ = sum.Write([]byte(joined))
		return fmt.Sprintf("%d:%x", len(words), sum.Sum64())
	}
	return joined
}

// optionSets are all valid combinations, without strict-cpu-reservation, which every other
// recording adds.
var optionSets = [][]string{
	{}, {fullCores}, {acrossNodes}, {bySocket}, {acrossCores}, {byCache},
	{fullCores, acrossNodes}, {fullCores, bySocket}, {fullCores, byCache}, {acrossNodes, bySocket},
	{bySocket, acrossCores}, {bySocket, byCache}, {fullCores, acrossNodes, bySocket}, {fullCores, bySocket, byCache},
}

func writeRequests(t *testing.T) {
	requests := struct {
		Machines map[string][][5]int
		Runs     []*recording
	}{Machines: map[string][][5]int{}}
	random := rand.New(rand.NewPCG(1, 37))
	for _, one := range sample.All() {
		m := machine(t, one.Name)
		for _, c := range m.CPUs {
			requests.Machines[one.Name] = append(requests.Machines[one.Name], [5]int{c.ID, c.Core, c.Cache, c.Socket, c.Node})
		}
		for i, options := range optionSets {
			r := &recording{Machine: one.Name, Options: options}
			if i%2 == 1 {
				r.Options = append(slices.Clone(options), strictReservation)
			}
			r.generate(t, m, random)
			requests.Runs = append(requests.Runs, r)
		}
	}
	text, err := json.Marshal(requests)
	if err := errors.Join(err, os.WriteFile(*requestsFile, text, 0o644)); err != nil {
		t.Fatal(err)
	}
}

// generate generates random pods.
func (r *recording) generate(t *testing.T, m *topology.Machine, random *rand.Rand) {
	if r.Count = 1 + random.IntN(max(1, min(4, len(m.CPUs)/8))); random.IntN(3) == 0 {
		all := m.All().List()
		named := cpuset.New(all[random.IntN(len(all))], all[0])
		r.Reserved, r.Count = named.String(), 0
	}
	if slices.Contains(r.Options, fullCores) { // see TestReference
		if r.Reserved != "" {
			r.Reserved = m.Expand(set(t, r.Reserved), topology.ByCore).String()
		}
		r.Count *= m.ThreadsPerCore()
	}
	nodes := uint64(1)<<m.Count(topology.ByNode) - 1
	var live []string
	for i := range 16 {
		if len(live) > 0 && random.IntN(3) == 0 {
			gone := random.IntN(len(live))
			r.Steps = append(r.Steps, &step{Pod: live[gone]})
			live = slices.Delete(live, gone, gone+1)
			continue
		}
		s := &step{Pod: fmt.Sprint("p", i)}
		for _, kind := range [][]string{{""}, {""}, {"", ""}, {"init", ""}, {"init", "sidecar", ""}}[random.IntN(5)] {
			s.Asks = append(s.Asks, &request{Kind: kind, CPUs: amount(m, random), Nodes: random.Uint64() & nodes & -uint64(random.IntN(2))})
		}
		r.Steps = append(r.Steps, s)
		live = append(live, s.Pod)
	}
}

// amount returns the size of a part of the machine, or a little more.
func amount(m *topology.Machine, random *rand.Rand) int {
	all := len(m.CPUs)
	parts := []int{1, 2, 2, 3, m.ThreadsPerCore(), 2 * m.ThreadsPerCore(), all / m.Count(topology.ByCache) / 2, all / m.Count(topology.ByNode) / 2, all / m.Count(topology.ByNode)}
	n := parts[random.IntN(len(parts))]
	if random.IntN(6) == 0 {
		n += 1 + random.IntN(3)
	}
	return min(max(n, 1), max(all/2, 1))
}
