package iscsi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"swiftlet/internal/boundedio"
	"swiftlet/internal/checkpoint"
	"swiftlet/internal/volume/plugin"
)

const (
	// infoFile is in the mount point of the disk, beneath the mount.
	infoFile = "iscsi.json"
	// interfacePrefix is the prefix of the directory of an interface.
	interfacePrefix = "iface-"
)

// diskInfo is stored on disk for the logout.
type diskInfo struct {
	VolName       string
	Portals       []string
	Iqn           string
	Lun           string
	InitIface     string
	Iface         string
	InitiatorName string
}

// diskInfo describes the login of the volume.
func (s source) diskInfo(name string) diskInfo {
	n := diskInfo{VolName: name, Iqn: s.IQN, Lun: strconv.Itoa(int(s.Lun)), InitIface: s.ISCSIInterface, Iface: s.ISCSIInterface}
	for _, portal := range append([]string{s.TargetPortal}, s.Portals...) {
		n.Portals = append(n.Portals, withPort(portal))
	}
	if s.InitiatorName != nil && *s.InitiatorName != "" {
		// The volume has its own interface with its initiator name.
		n.InitiatorName, n.Iface = *s.InitiatorName, n.Portals[0]+":"+name
	}
	return n
}

// id is the directory of a volume, relative to the plugin's.
func (s source) id(spec plugin.Spec) string {
	n := s.diskInfo(spec.Name())
	id := filepath.Join(interfacePrefix+n.Iface, n.Portals[0]+"-"+n.Iqn+"-lun-"+n.Lun)
	if spec.Block() {
		return filepath.Join(plugin.DevicesDir, id)
	}
	return id
}

func (p *Plugin) dir() string { return filepath.Join(p.deps.RootDir, "plugins", Name) }

func (p *Plugin) path(id string) string { return filepath.Join(p.dir(), id) }

// writeInfo stores the disk info in dir, unless the disk is mounted there: then it is beneath the
// mount. It syncs the file: nothing else has all portals of the login.
func (p *Plugin) writeInfo(n diskInfo, dir string) error {
	mounted, err := p.deps.Mounter.Mounted(dir)
	if err != nil || mounted {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("create directory of disk: %w", err)
	}
	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode(n); err != nil {
		return fmt.Errorf("encode %s: %w", infoFile, err)
	}
	if err := checkpoint.Replace(filepath.Join(dir, infoFile), text.Bytes(), 0o640); err != nil {
		return fmt.Errorf("save %s: %w", infoFile, err)
	}
	return nil
}

// readInfo reads the disk info in dir. If it is missing or unreadable, it parses the directory name
// instead; it logs an unreadable file.
func (p *Plugin) readInfo(dir string) (diskInfo, error) {
	n, err := parseInfo(dir)
	if err == nil {
		return n, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		p.deps.Log.Warn("iscsi: failed to read disk info, using the directory name", "path", filepath.Join(dir, infoFile), "err", err)
	}
	return parseDirName(dir)
}

// parseInfo reads the disk info in dir.
func parseInfo(dir string) (n diskInfo, err error) {
	text, err := boundedio.ReadFile(filepath.Join(dir, infoFile), boundedio.Small)
	if err != nil {
		return diskInfo{}, err
	}
	if err := json.Unmarshal(text, &n); err != nil {
		return diskInfo{}, err
	}
	if len(n.Portals) == 0 || n.Iqn == "" {
		return diskInfo{}, errors.New("portal or target is missing")
	}
	return n, nil
}

// parseDirName parses iface-INTERFACE/PORTAL-TARGET-lun-LUN. Targets and portals may contain dashes,
// but a target begins with iqn. or eui.
func parseDirName(dir string) (diskInfo, error) {
	name := filepath.Base(dir)
	iface, hasInterface := strings.CutPrefix(filepath.Base(filepath.Dir(dir)), interfacePrefix)
	end := strings.LastIndex(name, "-lun-")
	begin := strings.Index(name, "-iqn.")
	if begin < 0 {
		begin = strings.Index(name, "-eui.")
	}
	if !hasInterface || begin < 0 || end < begin {
		return diskInfo{}, fmt.Errorf("parse directory name %s: not a disk of an iSCSI target", dir)
	}
	return diskInfo{Portals: []string{name[:begin]}, Iqn: name[begin+1 : end], Lun: name[end+len("-lun-"):], Iface: iface, InitIface: iface}, nil
}

// Staged lists the disks with a login, also a partial one.
func (p *Plugin) Staged() ([]string, error) {
	var ids []string
	for _, pattern := range []string{interfacePrefix + "*/*", filepath.Join(plugin.DevicesDir, interfacePrefix+"*/*")} {
		found, err := filepath.Glob(p.path(pattern))
		if err != nil {
			return nil, fmt.Errorf("list iSCSI disks: %w", err)
		}
		for _, path := range found {
			id, err := filepath.Rel(p.dir(), path)
			if err != nil {
				return nil, fmt.Errorf("list iSCSI disks: %w", err)
			}
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// DeviceOf finds the disk by its mount; a raw one by its disk info or the pod's bind mount.
func (p *Plugin) DeviceOf(v plugin.Published) (string, error) {
	if v.Block {
		return p.findRawID(v)
	}
	mount, err := p.deps.Mounter.SameFilesystemMount(v.Dir(Name), p.dir())
	if err != nil || mount == "" {
		return "", err
	}
	// The mount table has resolved paths.
	dir, err := filepath.EvalSymlinks(p.dir())
	if err != nil {
		return "", fmt.Errorf("resolve directory of iSCSI disks: %w", err)
	}
	return filepath.Rel(dir, mount)
}

// rawID is the device ID of a raw block volume by its disk info, "" for none.
func (p *Plugin) rawID(volume string) (string, error) {
	ids, err := p.Staged()
	if err != nil {
		return "", err
	}
	for _, id := range ids {
		if !strings.HasPrefix(id, plugin.DevicesDir+"/") {
			continue
		}
		if n, err := parseInfo(p.path(id)); err == nil && n.VolName == volume {
			return id, nil
		}
	}
	return "", nil
}

// MapDir has one bind mount of the raw block volume per pod. Connect has created it.
func (p *Plugin) MapDir(name string) string {
	id, err := p.rawID(name)
	if err != nil || id == "" {
		return filepath.Join(p.dir(), plugin.DevicesDir, "unknown", name)
	}
	return p.path(id)
}

// findRawID is rawID, with the pod's bind mount as a fallback for unreadable disk info.
func (p *Plugin) findRawID(v plugin.Published) (string, error) {
	id, err := p.rawID(v.Name)
	if err != nil || id != "" {
		return id, err
	}
	mapped, err := filepath.Glob(p.path(filepath.Join(plugin.DevicesDir, interfacePrefix+"*/*", string(v.PodUID))))
	if err != nil {
		return "", fmt.Errorf("find raw iSCSI disks: %w", err)
	}
	var found []string
	for _, path := range mapped {
		dir := filepath.Dir(path)
		if n, err := parseInfo(dir); (err != nil || n.VolName == "") && pointsTo(v.Dir(Name), path) {
			found = append(found, dir)
		}
	}
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return filepath.Rel(p.dir(), found[0])
	}
	return "", fmt.Errorf("raw iSCSI volume %s may be any of %s", v.Name, strings.Join(found, ", "))
}

// pointsTo reports whether the link of a raw block volume points to the device at path, or to one
// that is gone. Before the device is mapped, it points to path itself.
func pointsTo(link, path string) bool {
	if to, err := os.Readlink(link); err == nil && to == path {
		return true
	}
	var want, have unix.Stat_t
	if err := unix.Stat(link, &want); err != nil {
		return true
	}
	return unix.Stat(path, &have) == nil && have.Rdev == want.Rdev
}

// FindMapDir finds the directory of a raw block volume from what is on disk.
func (p *Plugin) FindMapDir(v plugin.Published) (string, error) {
	id, err := p.findRawID(v)
	if err != nil || id == "" {
		return "", err
	}
	return p.path(id), nil
}

// remove removes the disk's directory, and that of its interface with the last disk.
func remove(dir string) error {
	files, err := checkpoint.Files(filepath.Join(dir, infoFile))
	if err != nil {
		return fmt.Errorf("remove directory of iSCSI disk: %w", err)
	}
	for _, name := range append(files, dir) {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove directory of iSCSI disk: %w", err)
		}
	}
	_ = os.Remove(filepath.Dir(dir)) // fails while it has other disks
	return nil
}
