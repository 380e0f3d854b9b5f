package architecture

// layers lists the packages under internal/ from the inside out. A package may import
// packages of the lines before its own, never of its own line or a later one.
// ARCHITECTURE.md explains the lines; a new package must be added here first.
var layers = [][]string{
	{"pod", "meter", "backoff", "queue", "notify", "require"}, // the vocabulary
	{"plan", "podstatus"},
	{"checkpoint"}, // every state file is written by it, those of other adapters, too
	{"config", "kubeapi", "cri", "cgroup", "pluginreg", "certificate", "nftables", "host", "filetree"},
	{"runtime", "observe", "image", "volume", "resource", "probe", "logs", "stats", "dns"},
	{"source", "desired", "admit", "syncloop", "worker", "podsync", "status", "eviction"},
	{"node", "shutdown", "oom", "iptables"},
	{"server", "standalone", "metrics", "tracing"},
	{"agent"},
}

// only names imports that are kept to a few packages, with the reason.
var only = []struct {
	path     string   // this import path, or anything below it
	packages []string // may be imported by these alone
	why      string
}{
	{"k8s.io/kubernetes", nil, "it is the system being rewritten; tests use it from a module of their own"},
	{"github.com/containerd/containerd", nil, "the runtime is reached over CRI only"},
	{"github.com/opencontainers/cgroups", []string{"cgroup", "resource", "stats"}, "one package knows the cgroup tree"},
	{"go.opentelemetry.io", []string{"tracing"}, "parts do not know that they are traced"},
	{"github.com/spf13/pflag", []string{"config"}, "flags are resolved once"},
	{"k8s.io/component-base/featuregate", []string{"config"}, "feature gates are resolved once, not looked up in logic"},
}
