package architecture

// unsynced names the source files that write files by other means than package checkpoint,
// with the reason why what they write may be lost, or empty, after a crash of the machine. To
// wait for the disk takes milliseconds, and most of these are on the way of a pod's start.
var unsynced = map[string]string{
	"host/kernel_settings.go":            kernel,
	"host/process_limits.go":             kernel,
	"cgroup/kill.go":                     kernel,
	"cgroup/reserved.go":                 kernel,
	"cgroup/usage_alarm.go":              kernel,
	"standalone/cgroups.go":              kernel,
	"standalone/clean_network.go":        kernel,
	"host/lock_file.go":                  lock,
	"standalone/lock.go":                 lock,
	"logs/rotate.go":                     logs,
	"standalone/containerd.go":           logs,
	"resource/device/state.go":           aside,
	"resource/dra/state.go":              aside,
	"resource/statefile/statefile.go":    aside,
	"volume/blockdev/map.go":             places,
	"volume/hostpath/hostpath.go":        places,
	"volume/subpath.go":                  places,
	"volume/emptydir/emptydir.go":        markers,
	"volume/quota/quota.go":              markers,
	"dns/ensure_hosts.go":                "every start of a container compares the hosts file and writes it again",
	"runtime/create_container.go":        "the termination log is empty when it is made, and belongs to the container",
	"volume/atomicdir/write.go":          "every setup of a volume compares the files with the API objects and writes them again; most are in memory",
	"volume/quota/lists.go":              "the node's own lists of projects: they keep their owner and are locked; the content is synced before the rename",
	"resource/topology/sample/sample.go": tests,
	"volume/quota/quotatest/mount.go":    tests,
}

const (
	kernel  = "files of the kernel: they are on no disk"
	lock    = "nothing is read from it after a crash: the lock ends with the process"
	logs    = "logs: what containers write is not synced, either"
	aside   = "a state file of no use is moved aside for people to look at"
	places  = "mount points and links: after a crash nothing is mounted, and they are made again"
	markers = "empty files: where one is lost, the step it tells of is repeated"
	tests   = "used by tests alone"
)
