package plugin

import (
	"context"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
)

// Published is one volume of one pod as found on disk. Nothing else is known of a volume that an
// earlier run of the agent mounted, of a pod that no longer exists.
type Published struct {
	PodUID types.UID
	// PodDir is the pod's directory, ROOT/pods/UID.
	PodDir string
	// Name is the name of the volume's directory: Spec.Name when it was mounted.
	Name string
	// Block is set for a raw block volume.
	Block bool
}

// Dir is the volume's directory, or for a raw block volume the link to its device.
func (p Published) Dir(pluginName string) string {
	parent := VolumesDir
	if p.Block {
		parent = DevicesDir
	}
	return filepath.Join(p.PodDir, parent, DirName(pluginName), p.Name)
}

// Unpublisher is a kind whose volumes need more than an unmount.
type Unpublisher interface {
	// TearDown undoes SetUp or MapDevice from what is on disk, and removes the volume's
	// directory. It is called when no container uses the volume and its subPaths are unmounted.
	// It is idempotent, also after a crash at any line, and handles a partial SetUp. After a
	// failure nothing else touches the volume until TearDown succeeds.
	TearDown(ctx context.Context, p Published) error
}
