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

	"swiftlet/internal/checkpoint"
	"swiftlet/internal/volume/plugin"
)

const (
	// noteFile lies where the disk is mounted, beneath the mount.
	noteFile = "iscsi.json"
	// interfacePrefix begins the names of directories that are named for an interface.
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

// id is the directory of a volume below the plugin's.
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

// write puts the note into dir, unless the disk is mounted there: then it lies beneath. It
// waits until the note is on the disk: only it names all portals of the login.
func (p *Plugin) write(n note, dir string) error {
	mounted, err := p.deps.Mounter.Mounted(dir)
	if err != nil || mounted {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make directory of disk: %w", err)
	}
	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode(n); err != nil {
		return fmt.Errorf("encode %s: %w", noteFile, err)
	}
	if err := checkpoint.Replace(filepath.Join(dir, noteFile), text.Bytes(), 0o640); err != nil {
		return fmt.Errorf("save %s: %w", noteFile, err)
	}
	return nil
}

// read returns the note in dir, or what the directory's name tells where there is none, or none
// that can be read: then the log names it.
func (p *Plugin) read(dir string) (note, error) {
	n, err := parse(dir)
	if err == nil {
		return n, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		p.deps.Log.Warn("read iSCSI note failed, using the name of its directory", "path", filepath.Join(dir, noteFile), "err", err)
	}
	return byName(dir)
}

// parse returns the note in dir.
func parse(dir string) (n note, err error) {
	text, err := os.ReadFile(filepath.Join(dir, noteFile))
	if err != nil {
		return note{}, err
	}
	if err := json.Unmarshal(text, &n); err != nil {
		return note{}, err
	}
	if len(n.Portals) == 0 || n.Iqn == "" {
		return note{}, errors.New("portal or target is missing")
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

// DeviceOf finds the disk by its mount; a raw one by the note of its volume, or by what is
// held for the pod.
func (p *Plugin) DeviceOf(v plugin.Published) (string, error) {
	if v.Block {
		return p.rawIDOf(v)
	}
	twin, err := p.deps.Mounter.SameFilesystemMount(v.Dir(Name), p.dir())
	if err != nil || twin == "" {
		return "", err
	}
	// The mount table has no links in its paths.
	dir, err := filepath.EvalSymlinks(p.dir())
	if err != nil {
		return "", fmt.Errorf("resolve directory of iSCSI disks: %w", err)
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
		if n, err := parse(p.path(id)); err == nil && n.VolName == volume {
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

// rawIDOf is rawID for a pod's volume whose note may not name it.
func (p *Plugin) rawIDOf(v plugin.Published) (string, error) {
	id, err := p.rawID(v.Name)
	if err != nil || id != "" {
		return id, err
	}
	held, err := filepath.Glob(p.path(filepath.Join(plugin.DevicesDir, interfacePrefix+"*/*", string(v.PodUID))))
	if err != nil {
		return "", fmt.Errorf("look for raw iSCSI disks: %w", err)
	}
	var found []string
	for _, path := range held {
		dir := filepath.Dir(path)
		if n, err := parse(dir); (err != nil || n.VolName == "") && leadsTo(v.Dir(Name), path) {
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

// leadsTo reports whether the link of a raw volume is to the device that is held at path, or
// to one that is gone. Half way, it is to path itself.
func leadsTo(link, path string) bool {
	if to, err := os.Readlink(link); err == nil && to == path {
		return true
	}
	var want, have unix.Stat_t
	if err := unix.Stat(link, &want); err != nil {
		return true
	}
	return unix.Stat(path, &have) == nil && have.Rdev == want.Rdev
}

// FindMapDir finds the directory of a raw volume by the disk.
func (p *Plugin) FindMapDir(v plugin.Published) (string, error) {
	id, err := p.rawIDOf(v)
	if err != nil || id == "" {
		return "", err
	}
	return p.path(id), nil
}

// remove takes away the disk's directory, and that of its interface with the last.
func remove(dir string) error {
	notes, err := checkpoint.Files(filepath.Join(dir, noteFile))
	if err != nil {
		return fmt.Errorf("remove directory of iSCSI disk: %w", err)
	}
	for _, name := range append(notes, dir) {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove directory of iSCSI disk: %w", err)
		}
	}
	_ = os.Remove(filepath.Dir(dir)) // stays while it holds other disks
	return nil
}
