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

	"swiftlet/internal/volume/plugin"
)

const (
	// noteFile lies where the disk is mounted, beneath the mount.
	noteFile = "iscsi.json"
	// draftFile becomes the note by a rename, so that there is never half a note.
	draftFile = ".iscsi.json.new"
	// interfacePrefix begins the names of folders that are named for an interface.
	interfacePrefix = "iface-"
)

// note is what the disk tells of a login to whoever has to end it.
type note struct {
	VolName       string
	Portals       []string
	Iqn           string
	Lun           string
	InitIface     string
	Iface         string
	InitiatorName string
}

// note describes how the volume is reached.
func (s source) note(name string) note {
	n := note{VolName: name, Iqn: s.IQN, Lun: strconv.Itoa(int(s.Lun)), InitIface: s.ISCSIInterface, Iface: s.ISCSIInterface}
	for _, portal := range append([]string{s.TargetPortal}, s.Portals...) {
		n.Portals = append(n.Portals, withPort(portal))
	}
	if s.InitiatorName != nil && *s.InitiatorName != "" {
		// The volume has an interface of its own, with its initiator's name.
		n.InitiatorName, n.Iface = *s.InitiatorName, n.Portals[0]+":"+name
	}
	return n
}

// id is the folder of a volume below the plugin's.
func (s source) id(spec plugin.Spec) string {
	n := s.note(spec.Name())
	id := filepath.Join(interfacePrefix+n.Iface, n.Portals[0]+"-"+n.Iqn+"-lun-"+n.Lun)
	if spec.Block() {
		return filepath.Join(plugin.DevicesDir, id)
	}
	return id
}

func (p *Plugin) dir() string { return filepath.Join(p.deps.RootDir, "plugins", Name) }

func (p *Plugin) path(id string) string { return filepath.Join(p.dir(), id) }

// write puts the note into dir, unless the disk is mounted there: then it lies beneath.
func (p *Plugin) write(n note, dir string) error {
	mounted, err := p.deps.Mounter.Mounted(dir)
	if err != nil || mounted {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make folder of disk: %w", err)
	}
	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode(n); err != nil {
		return fmt.Errorf("encode %s: %w", noteFile, err)
	}
	if err := os.WriteFile(filepath.Join(dir, draftFile), text.Bytes(), 0o640); err != nil {
		return fmt.Errorf("save %s: %w", noteFile, err)
	}
	if err := os.Rename(filepath.Join(dir, draftFile), filepath.Join(dir, noteFile)); err != nil {
		return fmt.Errorf("save %s: %w", noteFile, err)
	}
	return nil
}

// read returns the note in dir, or what the folder's name tells where there is none.
func read(dir string) (note, error) {
	text, err := os.ReadFile(filepath.Join(dir, noteFile))
	if errors.Is(err, fs.ErrNotExist) {
		return byName(dir)
	}
	if err != nil {
		return note{}, fmt.Errorf("read %s: %w", noteFile, err)
	}
	var n note
	if err := json.Unmarshal(text, &n); err != nil {
		return note{}, fmt.Errorf("read %s: %w", filepath.Join(dir, noteFile), err)
	}
	if len(n.Portals) == 0 || n.Iqn == "" {
		return note{}, fmt.Errorf("read %s: it names no portal or no target", filepath.Join(dir, noteFile))
	}
	return n, nil
}

// byName takes apart iface-INTERFACE/PORTAL-TARGET-lun-LUN. A target's name may contain
// dashes, a portal's may, too; but a target's begins in one of two ways.
func byName(dir string) (note, error) {
	name := filepath.Base(dir)
	iface, hasInterface := strings.CutPrefix(filepath.Base(filepath.Dir(dir)), interfacePrefix)
	end := strings.LastIndex(name, "-lun-")
	begin := strings.Index(name, "-iqn.")
	if begin < 0 {
		begin = strings.Index(name, "-eui.")
	}
	if !hasInterface || begin < 0 || end < begin {
		return note{}, fmt.Errorf("%s names no disk of an iSCSI target", dir)
	}
	return note{Portals: []string{name[:begin]}, Iqn: name[begin+1 : end], Lun: name[end+len("-lun-"):], Iface: iface, InitIface: iface}, nil
}

// Staged lists the disks that are logged in to, also half way.
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

// DeviceOf finds the disk by its mount; a raw one by the note of its volume.
func (p *Plugin) DeviceOf(v plugin.Published) (string, error) {
	if v.Block {
		return p.rawID(v.Name)
	}
	twin, err := p.deps.Mounter.Twin(v.Dir(Name), p.dir())
	if err != nil || twin == "" {
		return "", err
	}
	// The mount table has no links in its paths.
	dir, err := filepath.EvalSymlinks(p.dir())
	if err != nil {
		return "", fmt.Errorf("resolve folder of iSCSI disks: %w", err)
	}
	return filepath.Rel(dir, twin)
}

// rawID finds the raw disk of a volume, "" for none.
func (p *Plugin) rawID(volume string) (string, error) {
	ids, err := p.Staged()
	if err != nil {
		return "", err
	}
	for _, id := range ids {
		if !strings.HasPrefix(id, plugin.DevicesDir+"/") {
			continue
		}
		n, err := read(p.path(id))
		if err != nil {
			return "", err
		}
		if n.VolName == volume {
			return id, nil
		}
	}
	return "", nil
}

// MapDir is where the raw volume is held for each pod: Connect has made it.
func (p *Plugin) MapDir(name string) string {
	id, err := p.rawID(name)
	if err != nil || id == "" {
		return filepath.Join(p.dir(), plugin.DevicesDir, "unknown", name)
	}
	return p.path(id)
}

// remove takes away the disk's folder, and that of its interface with the last.
func remove(dir string) error {
	for _, name := range []string{draftFile, noteFile, ""} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove folder of iSCSI disk: %w", err)
		}
	}
	_ = os.Remove(filepath.Dir(dir)) // stays while it holds other disks
	return nil
}
