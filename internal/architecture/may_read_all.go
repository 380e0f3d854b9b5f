package architecture

// mayReadAll lists the uses of functions that read all there is, by source file and function, with the
// reason why nothing but the node's owner or the kernel determines how much that is.
var mayReadAll = map[string]string{
	"apiserver/internal/pages/release.go bufio.NewScanner":          kernelFile,
	"cgroup/move_processes.go os.ReadFile":                          kernelFile,
	"cgroup/own_memory.go io/fs.ReadFile":                           kernelFile,
	"cgroup/pod_memory_usage.go os.ReadFile":                        kernelFile,
	"cgroup/update_qos.go os.ReadFile":                              kernelFile,
	"cmd/swiftlet/detach.go bufio.NewScanner":                       "our own process in the background",
	"config/host.go bufio.NewScanner":                               kernelFile,
	"host/kernel_facts.go os.ReadFile":                              kernelFile,
	"host/kernel_settings.go os.ReadFile":                           kernelFile,
	"host/release_program.go bufio.NewScanner":                      kernelFile,
	"node/machine.go os.ReadFile":                                   kernelFile,
	"resource/topology/read.go os.ReadFile":                         kernelFile,
	"standalone/cgroups.go os.ReadFile":                             kernelFile,
	"standalone/clean_network.go os.ReadFile":                       kernelFile,
	"standalone/host_state.go os.ReadFile":                          kernelFile,
	"stats/device_io.go os.ReadFile":                                kernelFile,
	"stats/proc.go os.ReadFile":                                     kernelFile,
	"volume/blockdev/loop.go os.ReadFile":                           kernelFile,
	"volume/mounts/selinux.go os.ReadFile":                          kernelFile,
	"volume/scsi/session.go os.ReadFile":                            kernelFile,
	"checkpoint/read.go os.ReadFile":                                stateFile,
	"image/records.go os.ReadFile":                                  stateFile,
	"resource/allocation/state.go os.ReadFile":                      stateFile,
	"resource/device/checkpoint/checkpoint.go os.ReadFile":          stateFile,
	"resource/dra/checkpoint.go os.ReadFile":                        stateFile,
	"resource/dra/health_checkpoint.go os.ReadFile":                 stateFile,
	"resource/statefile/read.go os.ReadFile":                        stateFile,
	"resource/userns/userns.go os.ReadFile":                         stateFile,
	"shutdown/state.go os.ReadFile":                                 stateFile,
	"standalone/lock.go os.ReadFile":                                stateFile,
	"standalone/paths.go os.ReadFile":                               stateFile,
	"config/file.go os.ReadFile":                                    ownersFile,
	"image/credentialplugin/settings.go os.ReadFile":                ownersFile,
	"image/node_credentials.go os.ReadFile":                         ownersFile,
	"standalone/api_server.go bufio.NewScanner":                     "our own API server, a line of at most 1 MiB at a time",
	"standalone/preflight.go os.ReadFile":                           "files of /proc, and a list of modules of the host's kernel below /lib",
	"volume/mounts/selinux_label.go bufio.NewScanner":               ownersFile,
	"volume/quota/lists.go io.ReadAll":                              ownersFile,
	"volume/quota/lists.go os.ReadFile":                             ownersFile,
	"volume/quota/quotatest/mount.go (*os/exec.Cmd).CombinedOutput": tests,
}

const (
	kernelFile = "a file of /proc, /sys or a cgroup has as much as the kernel knows"
	stateFile  = "only the agent writes it, in a directory of root, and limits what it writes"
	ownersFile = "only root can write it: the owner's configuration of the node"
)
