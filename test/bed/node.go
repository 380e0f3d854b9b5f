package bed

import "context"

// Node is what a test may do with a machine of the bed, whichever way that machine is
// made: a Box shares the host's kernel; a kernel of its own would be another kind.
type Node interface {
	Name() string
	Address() string // its InternalIP
	PodCIDR() string

	// Path is the host's name of a file of the node below /etc/kubernetes, /etc/containerd,
	// /etc/cni, /var/lib/kubelet, /var/log/pods and the like.
	Path(path string) string
	// Exec runs a program on the node to its end and returns its standard output.
	Exec(ctx context.Context, argv ...string) (string, error)

	StartContainerd(ctx context.Context) error
	StopContainerd() error // containers go on running

	StartKubelet(ctx context.Context, options KubeletOptions) error
	StopKubelet() error // asks it to end, and waits
	KillKubelet() error // gives it no chance to clean up

	// Close ends the node with everything that runs on it, and leaves nothing behind.
	Close() error
}

var _ Node = (*Box)(nil)
