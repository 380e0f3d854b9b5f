// Package plugin is the contract between the volume reconciler and the kinds of volumes.
//
// Every kind is a Plugin. What only some kinds need is asked for by further interfaces:
// Unpublisher, Stager, BlockMapper, Attacher, Expander, Meter, Labelled, Doctor,
// DriverNamer.
package plugin

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Plugin brings up one kind of volume.
type Plugin interface {
	// Name is the kind's qualified name, such as kubernetes.io/configmap. With its slash
	// turned into a tilde it is the folder the volumes live in.
	Name() string
	// Handles reports whether the volume is of this kind.
	Handles(s Spec) bool
	// SetUp brings the volume up, or its content up to date, and says where it is.
	// It may be repeated after success, failure, a crash at any line or a restart of the
	// agent: what is already as wanted is left alone. Calls for one volume never overlap,
	// and neither do those for one PersistentVolume, whichever pods they are for.
	// Nothing is left mounted or written outside the request's own folders.
	SetUp(ctx context.Context, r Request) (Result, error)
}

// Request names one volume of one pod.
type Request struct {
	Spec
	Pod *v1.Pod
	// PodDir is the pod's own folder, ROOT/pods/UID.
	PodDir string
	// DevicePath is where the volume is on this node: by the word of the attach controller,
	// or of the kind itself if it is a Connector. It is "" where nobody says.
	DevicePath string
	// Label is the SELinux label to mount the volume with, "" for none.
	Label string
}

// Result says where a volume is and how it is to be mounted.
type Result struct {
	// HostPath is the folder or file, for a raw block volume the device. It is "" for an image.
	HostPath string
	// Image volumes are images, which the runtime mounts.
	Image bool
	// ReadOnly volumes are mounted read-only whatever the container says.
	ReadOnly bool
	// SELinuxRelabel volumes are ours alone, so their labels may be changed.
	SELinuxRelabel bool
	// RefreshAt is when the content must be brought up to date, zero for never: what
	// follows API objects or the pod is refreshed on their change.
	RefreshAt time.Time
}

const (
	// VolumesDir is the folder of a pod that holds its volumes, one folder per kind.
	VolumesDir = "volumes"
	// DevicesDir is the folder of a pod that holds the links to its raw block volumes, one
	// folder per kind.
	DevicesDir = "volumeDevices"
	// MetaDir is the folder of a pod that holds what plugins note about volumes.
	MetaDir = "plugins"
)

// VolumeDir is where the volume lives.
func (r Request) VolumeDir(pluginName string) string {
	return filepath.Join(r.PodDir, VolumesDir, FolderName(pluginName), r.Name())
}

// MetaDir is where a plugin may note something about the volume.
func (r Request) MetaDir(pluginName, volumeName string) string {
	return filepath.Join(r.PodDir, MetaDir, FolderName(pluginName), volumeName)
}

// FolderName makes a plugin's name usable as a folder.
func FolderName(pluginName string) string { return strings.ReplaceAll(pluginName, "/", "~") }

// FSGroup is the group that owns the pod's volumes, nil where none was asked for.
func (r Request) FSGroup() *int64 {
	if sc := r.Pod.Spec.SecurityContext; sc != nil {
		return sc.FSGroup
	}
	return nil
}

// FSGroupPolicy says whether a volume that already belongs to the group is walked again.
func (r Request) FSGroupPolicy() v1.PodFSGroupChangePolicy {
	if sc := r.Pod.Spec.SecurityContext; sc != nil && sc.FSGroupChangePolicy != nil {
		return *sc.FSGroupChangePolicy
	}
	return v1.FSGroupChangeAlways
}
