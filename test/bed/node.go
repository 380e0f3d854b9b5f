package bed

import "context"

// Node is a node of the bed, as tests use it. Box is the implementation on the host's kernel.
type Node interface {
	Name() string
	Address() string // its InternalIP
	PodCIDR() string

	// Path is the host path of a file of the node below /etc/kubernetes, /etc/containerd,
	// /etc/cni, /var/lib/kubelet, /var/log/pods and so on.
	Path(path string) string
	// Exec runs a program on the node and returns its standard output.
	Exec(ctx context.Context, argv ...string) (string, error)

	StartContainerd(ctx context.Context) error
	StopContainerd() error // containers keep running

	StartKubelet(ctx context.Context, options KubeletOptions) error
	StopKubelet() error // sends SIGTERM and waits
	KillKubelet() error // sends SIGKILL and waits

	// Close kills everything on the node and removes its files.
	Close() error
}

var _ Node = (*Box)(nil)
