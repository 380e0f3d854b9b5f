package scsi

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Session is a session with an iSCSI target.
type Session struct {
	// Host is the number of the session's SCSI host.
	Host int
	// Portals are the addresses of the target in the session's connections.
	Portals []string
	dir     string
}

// Sessions lists the sessions with a target.
func (h Host) Sessions(target string) ([]Session, error) {
	dirs, err := filepath.Glob(filepath.Join(h.Sys, "class/iscsi_host/host*/device/session*"))
	if err != nil {
		return nil, err
	}
	var all []Session
	for _, dir := range dirs {
		name := filepath.Base(dir)
		at, err := readValue(filepath.Join(dir, "iscsi_session", name, "targetname"))
		if err != nil {
			return nil, err
		}
		if at != target {
			continue
		}
		host := strings.TrimPrefix(filepath.Base(filepath.Dir(filepath.Dir(dir))), "host")
		number, err := strconv.Atoi(host)
		if err != nil {
			return nil, fmt.Errorf("parse number of iSCSI host %q: %w", host, err)
		}
		portals, err := portals(dir)
		if err != nil {
			return nil, err
		}
		all = append(all, Session{Host: number, Portals: portals, dir: dir})
	}
	return all, nil
}

// portals are the addresses of a session's connections: the current and the configured ones.
func portals(session string) ([]string, error) {
	connections, err := filepath.Glob(filepath.Join(session, "connection*"))
	if err != nil {
		return nil, err
	}
	var all []string
	for _, dir := range connections {
		dir = filepath.Join(dir, "iscsi_connection", filepath.Base(dir))
		for _, prefix := range []string{"", "persistent_"} {
			address, err := readValue(filepath.Join(dir, prefix+"address"))
			if err != nil {
				return nil, err
			}
			port, err := readValue(filepath.Join(dir, prefix+"port"))
			if err != nil {
				return nil, err
			}
			if address != "" && port != "" {
				all = append(all, net.JoinHostPort(address, port))
			}
		}
	}
	return all, nil
}

// LUN is the disk with this LUN, "" if there is none (yet).
func (h Host) LUN(s Session, lun int) (string, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, fmt.Sprintf("target%d:0:0/%d:0:0:%d/block", s.Host, s.Host, lun)))
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("find LUN %d: %w", lun, err)
	}
	return h.Device(entries[0].Name()), nil
}

// readValue reads one value. It is "" if the session has ended.
func readValue(path string) (string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read from sysfs: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
