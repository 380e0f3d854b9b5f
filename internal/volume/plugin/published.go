package plugin

import (
	"context"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
)

// Published is one volume of one pod as the disk shows it. It is all that is known of the
// volume of a pod that an earlier run of the agent mounted and nobody wants any more.
type Published struct {
	PodUID types.UID
	// PodDir is the pod's own folder, ROOT/pods/UID.
	PodDir string
	// Name is the name of the volume's folder: Spec.Name at the time.
	Name string
	// Block says that it was found among the raw block volumes.
	Block bool
}

// Dir is the volume's folder, or for a raw block volume the link to its device.
func (p Published) Dir(pluginName string) string {
	parent := VolumesDir
	if p.Block {
		parent = DevicesDir
	}
	return filepath.Join(p.PodDir, parent, FolderName(pluginName), p.Name)
}

// Unpublisher is a kind whose volumes are taken away by more than an unmount.
type Unpublisher interface {
	// TearDown undoes SetUp or MapDevice by what the disk shows, and removes the volume's
	// folder. It is called when no container uses the volume and subPaths of it are
	// unmounted. It may be repeated after success, failure or a crash at any line; a volume
	// that was set up half way is taken down, too. A failure leaves the volume as it is:
	// nothing else touches it until TearDown succeeds.
	TearDown(ctx context.Context, p Published) error
}
