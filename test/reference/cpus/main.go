// Cpus records the allocations of the reference kubelet's static CPU policy. It reads machines and
// pods, as the tests of internal/resource/cpu write them, from standard input, and writes the pods
// with their CPUs and topology hints to standard output:
//
//	go test ./internal/resource/cpu -run TestReference -ask /tmp/pods.json
//	(cd test/reference && go run ./cpus </tmp/pods.json) >internal/resource/cpu/testdata/reference.json
package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/topology"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager/bitmask"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/utils/cpuset"
)

// question is the input, and with its empty fields filled in the output.
type question struct {
	// Machines have one row per CPU: CPU, core, uncore cache, socket and NUMA node.
	Machines map[string][][5]int `json:",omitempty"`
	Runs     []*run
}

// run is a sequence of pods on a machine.
type run struct {
	Machine  string
	Options  []string `json:",omitempty"`
	Reserved string   `json:",omitempty"` // reserved CPUs, or
	Count    int      `json:",omitempty"` // number of reserved CPUs
	// Chosen is the output: the reserved CPUs, or an error.
	Chosen string
	Steps  []*step
}

// step adds a pod, or removes it if Asks is empty.
type step struct {
	Pod  string
	Asks []*ask `json:",omitempty"`
}

// ask is the request of a container.
type ask struct {
	Kind  string `json:",omitempty"` // init, sidecar or empty
	CPUs  int
	Nodes uint64 `json:",omitempty"` // NUMA affinity, as a bit mask
	Hints string `json:",omitempty"`
	Got   string // CPUs, or an error
}

func main() {
	if err := record(); err != nil {
		fmt.Fprintln(os.Stderr, "cpus:", err)
		os.Exit(1)
	}
}

func record() error {
	var q question
	if err := json.NewDecoder(os.Stdin).Decode(&q); err != nil {
		return err
	}
	for _, gate := range []string{"CPUManagerPolicyAlphaOptions", "CPUManagerPolicyBetaOptions"} {
		if err := utilfeature.DefaultMutableFeatureGate.Set(gate + "=true"); err != nil {
			return err
		}
	}
	out := os.Stdout
	for i, r := range q.Runs {
		if err := r.answer(machine(q.Machines[r.Machine])); err != nil {
			return fmt.Errorf("%s with %s: %w", r.Machine, r.Options, err)
		}
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		open, end := ",\n", ""
		if i == 0 {
			open = "[\n"
		}
		if i == len(q.Runs)-1 {
			end = "\n]\n"
		}
		if _, err := fmt.Fprintf(out, "%s%s%s", open, line, end); err != nil {
			return err
		}
	}
	return nil
}

func machine(rows [][5]int) *topology.CPUTopology {
	m := &topology.CPUTopology{CPUDetails: topology.CPUDetails{}, NumCPUs: len(rows)}
	for _, r := range rows {
		m.CPUDetails[r[0]] = topology.CPUInfo{CoreID: r[1], UncoreCacheID: r[2], SocketID: r[3], NUMANodeID: r[4]}
	}
	m.NumCores, m.NumSockets = m.CPUDetails.Cores().Size(), m.CPUDetails.Sockets().Size()
	m.NumNUMANodes, m.NumUncoreCache = m.CPUDetails.NUMANodes().Size(), m.CPUDetails.UncoreCaches().Size()
	return m
}

// where is a fake topology manager that returns a fixed NUMA affinity.
type where struct{ nodes bitmask.BitMask }

func (w *where) GetAffinity(klog.Logger, string, string) topologymanager.TopologyHint {
	return topologymanager.TopologyHint{NUMANodeAffinity: w.nodes, Preferred: true}
}
func (w *where) GetPolicy() topologymanager.Policy { return topologymanager.NewNonePolicy() }
func (w *where) Name() string                      { return "none" }

func (r *run) answer(m *topology.CPUTopology) error {
	named, err := cpuset.Parse(r.Reserved)
	if err != nil {
		return err
	}
	options := map[string]string{}
	for _, o := range r.Options {
		options[o] = "true"
	}
	log, place := klog.Logger{}, &where{} // the log is discarded
	policy, err := cpumanager.NewStaticPolicy(log, m, max(named.Size(), r.Count), named, place, options)
	if err != nil {
		r.Chosen, r.Steps = "error: "+err.Error(), nil
		return nil
	}
	s := state.NewMemoryState(log)
	if err := policy.Start(log, s); err != nil {
		return err
	}
	r.Chosen = m.CPUDetails.CPUs().Difference(policy.GetAllocatableCPUs(s)).String()
	pods := map[string]*v1.Pod{}
	for _, step := range r.Steps {
		if len(step.Asks) == 0 {
			if err := release(log, policy, s, pods[step.Pod]); err != nil {
				return err
			}
			continue
		}
		p := step.pod()
		pods[step.Pod] = p
		for i, a := range step.Asks {
			c := find(p, fmt.Sprint("c", i))
			hints := policy.GetTopologyHints(log, s, p, c, lifecycle.AddOperation)
			a.Hints = text(hints["cpu"])
			place.nodes = nil
			if a.Nodes != 0 {
				place.nodes = mask(a.Nodes)
			}
			if err := policy.Allocate(log, s, p, c, lifecycle.AddOperation); err != nil {
				a.Got = "error: " + err.Error()
				if err := release(log, policy, s, p); err != nil {
					return err
				}
				break
			}
			got, _ := s.GetCPUSet(string(p.UID), c.Name)
			a.Got = got.String()
		}
	}
	return nil
}

// release removes the pod's containers from the policy.
func release(log klog.Logger, policy cpumanager.Policy, s state.State, p *v1.Pod) error {
	for _, c := range append(slices.Clone(p.Spec.InitContainers), p.Spec.Containers...) {
		if err := policy.RemoveContainer(log, s, string(p.UID), c.Name); err != nil {
			return err
		}
	}
	return nil
}

func mask(bits uint64) bitmask.BitMask {
	m, _ := bitmask.NewBitMask()
	for i := range 64 {
		if bits&(1<<i) != 0 {
			_ = m.Add(i)
		}
	}
	return m
}

// pod returns a Guaranteed pod.
func (s *step) pod() *v1.Pod {
	p := &v1.Pod{}
	p.Name, p.UID = s.Pod, types.UID(s.Pod)
	for i, a := range s.Asks {
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

func find(p *v1.Pod, name string) *v1.Container {
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// text returns the bit mask of each hint, with ! if it is preferred; of more than 15 hints their
// number and a checksum.
func text(hints []topologymanager.TopologyHint) string {
	type hint struct {
		bits      uint64
		preferred bool
	}
	var all []hint
	for _, h := range hints {
		one := hint{preferred: h.Preferred}
		for _, i := range h.NUMANodeAffinity.GetBits() {
			one.bits |= 1 << i
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b hint) int { return int(a.bits) - int(b.bits) })
	var words []string
	for _, h := range all {
		word := fmt.Sprint(h.bits)
		if h.preferred {
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
