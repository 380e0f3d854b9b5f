package trust

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Limit is how long one class may take.
const Limit = 40 * time.Minute

// Class is one kind of fault and the commands that inject it. A class passes if all its commands do.
type Class struct {
	Name    string
	Injects string // what the faults are
	Promise string // what holds nevertheless
	// Commands run in the root of the repository, one after another.
	Commands []Command
}

// Command is a program with its arguments and additional environment variables.
type Command struct {
	Env  []string
	Args []string
}

// goTest runs tests of a package in their full form.
func goTest(tests, packages string, env ...string) Command {
	args := []string{"go", "test", "-count=1", "-v", "-timeout", Limit.String(), "-run", tests}
	return Command{Env: env, Args: append(args, strings.Fields(packages)...)}
}

// Classes returns all classes in the order of the table.
func Classes() []Class {
	return slices.Concat(insideClasses(), outsideClasses())
}

// stateTests are the packages that test what is left on disk after a fault.
const stateTests = "./test/path ./internal/checkpoint ./internal/certificate ./internal/restoration ./test/e2e"

// insideClasses are faults of the agent itself, its disk and its machine.
func insideClasses() []Class {
	return []Class{
		{
			Name: "simulate", Injects: "seeded faults, delays and restarts at every call of a simulated runtime, kernel and API server",
			Promise:  "no container runs that is not wanted, none restarts without cause, nothing leaks, status converges",
			Commands: []Command{{Args: []string{"make", "simulate", "SEEDS=2000"}}},
		},
		{
			Name: "crash", Injects: "kill -9 of the agent at every step of a pod's life",
			Promise:  "after the next start the pod converges and nothing is left",
			Commands: []Command{{Args: []string{"make", "crash"}}},
		},
		{
			Name: "mutations", Injects: "deliberate breaks of the source code",
			Promise:  "a test catches each",
			Commands: []Command{{Args: []string{"make", "mutations"}}},
		},
		{
			Name: "power-loss", Injects: "a cut of power at every write of a pod's life",
			Promise:  "no torn state; after boot the pods are as they should be",
			Commands: []Command{goTest("^TestPowerLoss|^TestLastKnownPods$", stateTests, "SWIFTLET_POWER_LOSSES=8")},
		},
		{
			Name: "disk-errors", Injects: "ENOSPC and EIO at every write of every state file",
			Promise:  "the old state stays readable; the write is repeated",
			Commands: []Command{goTest("^TestDiskErrors", stateTests)},
		},
		{
			Name: "soak", Injects: "kill -9 of the agent, containerd, shims and the API server during churn",
			Promise:  "goroutines, descriptors, memory, mounts, cgroups, network namespaces and containers end as they began",
			Commands: []Command{goTest("^TestSoak$", "./test/e2e", "SWIFTLET_SOAK=30m")},
		},
	}
}

// outsideClasses are faults that come from pods, plugins, the runtime, the API server and strangers.
func outsideClasses() []Class {
	return []Class{
		{
			Name: "hostile-pods", Injects: "pods at every limit, floods of output, fork bombs, links, fifos and devices in place of files",
			Promise:  "memory of the agent is bounded, the node stays Ready, other pods start and stop, everything can be deleted",
			Commands: []Command{goTest("^TestHostilePods$", "./test/e2e", "SWIFTLET_HOSTILE_PODS=all")},
		},
		{
			Name: "runtime", Injects: "a runtime that hangs, delays, fails, loses, cuts, repeats and invents answers and events",
			Promise:  "a hanging call affects its own pod only; no container is restarted; the node converges when the runtime does",
			Commands: []Command{goTest("^TestRuntimeFaults$", "./test/e2e", "SWIFTLET_RUNTIME_FAULTS=all")},
		},
		{
			Name: "strangers", Injects: "requests with unique bearer tokens on the agent's port, from a pod",
			Promise:  "pods start as fast as without them",
			Commands: []Command{goTest("^TestStrangers", "./test/e2e", "SWIFTLET_STRANGERS=5m")},
		},
		{
			Name: "api-server", Injects: "429, 5xx, timeouts, 410, slow watches, expired tokens, swapped certificates, invalid objects",
			Promise:  "running pods are not touched; the node converges when the API server does",
			Commands: []Command{goTest("^TestAPIServerFaults", "./test/e2e", "SWIFTLET_API_FAULTS=all")},
		},
		{
			Name: "canary", Injects: "secrets with known text in every place that can hold one",
			Promise:  "nothing that the agent writes, logs, traces or serves contains one, except the files it should be in",
			Commands: []Command{goTest("^TestCanary", "./test/e2e")},
		},
		{
			Name: "fuzz", Injects: "random input to every parser of outside input",
			Promise:  "no panic, no hang, no invalid result",
			Commands: []Command{{Args: []string{"hack/fuzz.sh", "20s", "Fuzz"}}},
		},
		{
			Name: "cves", Injects: "the attacks of known CVEs of the kubelet, and the removal of the guard against each",
			Promise:  "the attack fails; without the guard the test fails",
			Commands: []Command{{Args: []string{"hack/cves.sh"}}},
		},
	}
}

// Find returns the named class.
func Find(name string) (Class, error) {
	var names []string
	for _, c := range Classes() {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	return Class{}, fmt.Errorf("find class: there is no class %q, only %s", name, strings.Join(names, ", "))
}
