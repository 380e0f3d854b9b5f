package csi

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"

	"swiftlet/internal/volume/plugin"
)

const (
	// mountDir is where in a volume's directory the driver publishes it.
	mountDir = "mount"
	// globalMountDir is where in a volume's directory outside of pods the driver stages it.
	globalMountDir = "globalmount"
	// devicesDir holds all there is of raw block volumes, beside the directories of drivers.
	devicesDir = "volumeDevices"
)

// dir is the directory outside of pods that holds all CSI volumes.
func (p *Plugin) dir() string { return filepath.Join(p.cfg.RootDir, "plugins", Name) }

// deviceID names a staged volume: by its staging path, since all that is known of it may
// be the disk.
func deviceID(path ...string) string { return Name + "/" + filepath.Join(path...) }

// stagingPath is where the device is staged. It refuses what DeviceID did not make.
func (p *Plugin) stagingPath(id string) (path string, block bool, err error) {
	in, ok := strings.CutPrefix(id, Name+"/")
	parts := strings.Split(in, "/")
	if !ok || len(parts) != 3 || !filepath.IsLocal(in) {
		return "", false, fmt.Errorf("%q names no staged CSI volume", id)
	}
	return filepath.Join(p.dir(), in), parts[0] == devicesDir && parts[1] == "staging", nil
}

func mountedID(driver, handle string) string {
	return deviceID(driver, fmt.Sprintf("%x", sha256.Sum256([]byte(handle))), globalMountDir)
}

func rawID(volume string) string { return deviceID(devicesDir, "staging", volume) }

// idOf is the device of a PersistentVolume.
func idOf(s plugin.Spec) string {
	if s.Block() {
		return rawID(s.PV.Name)
	}
	from := persistent(s)
	return mountedID(from.driver, from.handle)
}

// rawDir is the directory of one raw block volume: its note is in data, the links to it in dev.
func (p *Plugin) rawDir(volume string) string { return filepath.Join(p.dir(), devicesDir, volume) }

// rawPublishDir holds one device per pod that uses the raw block volume.
func (p *Plugin) rawPublishDir(volume string) string {
	return filepath.Join(p.dir(), devicesDir, "publish", volume)
}

// attachmentName is the name of the object that says where a volume is attached.
func attachmentName(handle, driver, node string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(handle+driver+node)))
}

// inlineHandle is the handle of a volume that is described in a pod.
func inlineHandle(uid, volume string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(uid+volume)))
}
