package architecture

// layers lists the packages under internal/ from the inside out. A package may import
// packages of the lines above its own, but none of its own line or of a later one.
// ARCHITECTURE.md explains the layers. A new package must be added here first.
var layers = [][]string{
	{"clip"}, // limits texts of others, also those that the vocabulary has
	{"pod", "klogfmt", "meter", "backoff", "queue", "notify", "require", "contain", "instant"}, // the vocabulary
	{"plan", "podstatus", "why"},
	{"boundedio", "connlimit"}, // bounds what others write, and open
	{"checkpoint"},             // writes every state file, also those of adapters
	{"kubeclient"},             // every kind of API object in use, for adapters and above
	{"config", "kubeapi", "cri", "cgroup", "pluginreg", "certificate", "nftables", "host", "filetree", "program", "restoration"},
	{"runtime", "observe", "image", "volume", "resource", "probe", "logs", "stats", "dns"},
	{"source", "desired", "admit", "syncloop", "worker", "podsync", "status", "eviction"},
	{"node", "shutdown", "oom", "iptables"},
	{"server", "standalone", "metrics", "tracing", "page"},
	{"preflight", "swap", "bugreport", "surroundings"},
	{"agent"},
}

// restricted lists imports that only a few packages may use, with the reason.
var restricted = []struct {
	path     string   // this import path and everything below it
	packages []string // the packages that may import it
	why      string
}{
	{"k8s.io/kubernetes", nil, "Swiftlet does not depend on the kubelet that it replaces; tests use it from their own module"},
	{"github.com/containerd/containerd", nil, "Swiftlet talks to the runtime only over CRI"},
	{"github.com/opencontainers/cgroups", []string{"cgroup", "resource", "stats"}, "other packages use package cgroup"},
	{"go.opentelemetry.io", []string{"tracing"}, "other packages do not depend on the tracing library"},
	{"github.com/spf13/pflag", []string{"config"}, "flags are parsed once, in config"},
	{"k8s.io/component-base/featuregate", []string{"config"}, "feature gates are resolved once, in config"},
}
