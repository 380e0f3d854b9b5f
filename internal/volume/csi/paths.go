package csi

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"

	"swiftlet/internal/volume/plugin"
)

const (
	// mountDir is the publish target in the directory of a volume.
	mountDir = "mount"
	// globalMountDir is the staging target in the plugin's directory of a volume.
	globalMountDir = "globalmount"
	// devicesDir has the directories of raw block volumes. It is next to those of drivers.
	devicesDir = "volumeDevices"
)

// dir is the plugin's directory.
func (p *Plugin) dir() string { return filepath.Join(p.cfg.RootDir, "plugins", Name) }

// deviceID identifies a staged volume by its staging path, which is all that is known of a volume
// found on disk.
func deviceID(path ...string) string { return Name + "/" + filepath.Join(path...) }

// stagingPath is the staging path of a device. It rejects invalid IDs.
func (p *Plugin) stagingPath(id string) (path string, block bool, err error) {
	in, ok := strings.CutPrefix(id, Name+"/")
	parts := strings.Split(in, "/")
	if !ok || len(parts) != 3 || !filepath.IsLocal(in) {
		return "", false, fmt.Errorf("parse device ID %q: not a staged CSI volume", id)
	}
	return filepath.Join(p.dir(), in), parts[0] == devicesDir && parts[1] == "staging", nil
}

func mountedID(driver, handle string) string {
	return deviceID(driver, fmt.Sprintf("%x", sha256.Sum256([]byte(handle))), globalMountDir)
}

func rawID(volume string) string { return deviceID(devicesDir, "staging", volume) }

// idOf is the device ID of a PersistentVolume.
func idOf(s plugin.Spec) string {
	if s.Block() {
		return rawID(s.PV.Name)
	}
	from := persistentSource(s)
	return mountedID(from.driver, from.handle)
}

// rawDir is the directory of a raw block volume: its volume data is in data, its bind mounts in dev.
func (p *Plugin) rawDir(volume string) string { return filepath.Join(p.dir(), devicesDir, volume) }

// rawPublishDir has one device per pod that uses the raw block volume.
func (p *Plugin) rawPublishDir(volume string) string {
	return filepath.Join(p.dir(), devicesDir, "publish", volume)
}

// attachmentName is the name of the VolumeAttachment.
func attachmentName(handle, driver, node string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(handle+driver+node)))
}

// inlineHandle is the handle of an inline volume.
func inlineHandle(uid, volume string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(uid+volume)))
}
