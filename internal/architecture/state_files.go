package architecture

// unsynced lists the source files that write files without package checkpoint, with the reason
// why these files may be lost or empty after a crash of the host. An fsync takes milliseconds,
// and most of these writes are part of a pod's start.
var unsynced = map[string]string{
	"host/kernel_settings.go":              kernel,
	"host/process_limits.go":               kernel,
	"cgroup/kill.go":                       kernel,
	"cgroup/move_processes.go":             kernel,
	"cgroup/usage_notifier.go":             kernel,
	"standalone/cgroups.go":                kernel,
	"standalone/clean_network.go":          kernel,
	"host/lock_file.go":                    lock,
	"restoration/lock.go":                  lock,
	"restoration/replace.go":               "directories and synced files are renamed, and their directories synced",
	"standalone/lock.go":                   lock,
	"logs/rotate.go":                       logs,
	"standalone/rotate_log.go":             logs,
	"resource/device/checkpoint.go":        setAside,
	"resource/dra/checkpoint.go":           setAside,
	"resource/statefile/statefile.go":      setAside,
	"volume/blockdev/map.go":               mountPoints,
	"volume/hostpath/hostpath.go":          mountPoints,
	"volume/subpath.go":                    mountPoints,
	"volume/emptydir/emptydir.go":          markers,
	"volume/quota/quota.go":                markers,
	"dns/ensure_hosts.go":                  "every container start compares the hosts file and rewrites it if needed",
	"runtime/create_container.go":          "the termination log is created empty and is written by the container",
	"volume/atomicdir/write.go":            "every volume setup compares the files with the API objects and rewrites them; most are on tmpfs",
	"volume/quota/lists.go":                "/etc/projects and /etc/projid keep their owner and are locked; the content is synced before the rename",
	"apiserver/internal/backup/archive.go": "a backup is unpacked to a directory that a crash leaves unused",
	"apiserver/internal/backup/save.go":    "a lock file, and a backup that is synced before it gets its name",
	"apiserver/internal/pki/kubeconfig.go": "the file may belong to a group, which checkpoint cannot set; it is synced before the rename",
	"resource/topology/sample/sample.go":   tests,
	"volume/quota/quotatest/mount.go":      tests,
}

const (
	kernel      = "kernel files, not on a disk"
	lock        = "lock files are not read after a crash: the lock ends with the process"
	logs        = "logs are not synced, like the output of containers"
	setAside    = "an unreadable state file is renamed, for an operator to inspect"
	mountPoints = "mount points and links: after a crash nothing is mounted, and they are created again"
	markers     = "empty marker files: if one is lost, its step is repeated"
	tests       = "used only by tests"
)
