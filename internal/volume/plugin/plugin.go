// Package plugin is the contract between the volume reconciler and the kinds of volumes.
//
// Every kind implements Plugin. A kind that needs more also implements optional interfaces:
// Unpublisher, Stager, BlockMapper, Attacher, Expander, UsageReporter, SELinuxMounter,
// HealthReporter, DriverNamer.
package plugin

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/volume/ownership"
)

// Plugin mounts one kind of volume.
type Plugin interface {
	// Name is the qualified plugin name, such as kubernetes.io/configmap. The directory of its
	// volumes is named after it, with a tilde for the slash.
	Name() string
	// Handles reports whether the volume is of this kind.
	Handles(s Spec) bool
	// SetUp mounts the volume, or updates its content, and returns where it is. It is
	// idempotent, also after a failure, a crash at any line or a restart of the agent. Calls for
	// one volume never overlap, nor do calls for one PersistentVolume for different pods. It
	// mounts and writes nothing outside the request's own directories.
	SetUp(ctx context.Context, r Request) (Result, error)
}

// Request describes one volume of one pod.
type Request struct {
	Spec
	Pod *v1.Pod
	// PodDir is the pod's directory, ROOT/pods/UID.
	PodDir string
	// DevicePath is the volume's device on this node, as reported by the attach controller or
	// by the kind if it is a Connector. It is "" if none is reported.
	DevicePath string
	// Label is the SELinux label to mount the volume with, "" for none.
	Label string
	// Report is called with the progress of a change to the pod's fsGroup that takes long; may be
	// nil. It must not block.
	Report func(message string)
	// Clock may be nil if Report is.
	Clock clock.WithTicker
}

// Result is where a volume is and how containers mount it.
type Result struct {
	// HostPath is the directory or file, for a raw block volume the device. It is "" for an image.
	HostPath string
	// Image volumes are images, which the runtime mounts.
	Image bool
	// ReadOnly volumes are mounted read-only regardless of the container's volumeMount.
	ReadOnly bool
	// SELinuxRelabel means that the runtime may relabel the volume's files.
	SELinuxRelabel bool
	// RefreshAt is when SetUp must be called again, zero for never. Content that follows API
	// objects or the pod is refreshed when they change.
	RefreshAt time.Time
}

const (
	// VolumesDir is the subdirectory of a pod's directory with its volumes, one directory per kind.
	VolumesDir = "volumes"
	// DevicesDir is the subdirectory of a pod's directory with the links to its raw block
	// volumes, one directory per kind.
	DevicesDir = "volumeDevices"
	// MetaDir is the subdirectory of a pod's directory where plugins store state of volumes.
	MetaDir = "plugins"
)

// VolumeDir is the directory of the volume.
func (r Request) VolumeDir(pluginName string) string {
	return filepath.Join(r.PodDir, VolumesDir, DirName(pluginName), r.Name())
}

// MetaDir is the directory where a plugin may store state of the volume.
func (r Request) MetaDir(pluginName, volumeName string) string {
	return filepath.Join(r.PodDir, MetaDir, DirName(pluginName), volumeName)
}

// DirName converts a plugin name to a directory name.
func DirName(pluginName string) string { return strings.ReplaceAll(pluginName, "/", "~") }

// FSGroup is the fsGroup of the pod, nil for none.
func (r Request) FSGroup() *int64 {
	if sc := r.Pod.Spec.SecurityContext; sc != nil {
		return sc.FSGroup
	}
	return nil
}

// FSGroupPolicy is the fsGroupChangePolicy of the pod.
func (r Request) FSGroupPolicy() v1.PodFSGroupChangePolicy {
	if sc := r.Pod.Spec.SecurityContext; sc != nil && sc.FSGroupChangePolicy != nil {
		return *sc.FSGroupChangePolicy
	}
	return v1.FSGroupChangeAlways
}

// ChangeGroup changes the files of the volume at dir to the group.
func (r Request) ChangeGroup(dir string, g ownership.Group) error {
	return ownership.Apply(dir, g, ownership.Progress{Volume: r.shownDir(dir), Report: r.Report, Clock: r.Clock})
}

// shownDir is dir from the pod's UID on, as the reference kubelet shows it in events.
func (r Request) shownDir(dir string) string {
	shown, err := filepath.Rel(filepath.Dir(r.PodDir), dir)
	if err != nil || !filepath.IsLocal(shown) {
		return dir
	}
	return shown
}
