package iscsi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"swiftlet/internal/volume/plugin"
	"swiftlet/internal/volume/scsi"
)

// Attempts to log in at all portals before fewer paths are enough, as in the reference kubelet.
const (
	minPaths  = 2 // from round minRounds on
	minRounds = 2
	maxRounds = 5 // then one path is enough
)

const (
	// lunTimeout is how long the kernel may take to find a disk after a scan.
	lunTimeout = 30 * time.Second
	// multipathTimeout is how long multipathd may take to create the multipath device.
	multipathTimeout = 10 * time.Second
	// pollPeriod is the period of the checks for either.
	pollPeriod = 100 * time.Millisecond
)

// Exit codes of iscsiadm.
const (
	codeNoSession = 2
	codeExists    = 15
	codeNoObjects = 21
)

// Connect logs in to the target by all its portals and returns the disk.
func (p *Plugin) Connect(ctx context.Context, r plugin.Request) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout) // a login is not interrupted
	defer cancel()
	from := sourceOf(r.Spec)
	n := from.diskInfo(r.Name())
	chap, err := p.chap(ctx, r, from)
	if err != nil {
		return "", err
	}
	id := from.id(r.Spec)
	if err := p.checkExclusive(r, id); err != nil {
		return "", err
	}
	l := login{Plugin: p, diskInfo: n, source: from, chap: chap}
	shown, err := l.iscsiadm(ctx, "-m", "iface", "-I", l.InitIface, "-o", "show")
	if err != nil {
		return "", fmt.Errorf("iscsi: could not read iface %s error: %w", l.InitIface, err)
	}
	// From here on the disk info on disk says how to undo the login.
	if err := p.writeInfo(n, p.path(id)); err != nil {
		return "", err
	}
	if err := l.cloneInterface(ctx, shown); err != nil {
		return "", err
	}
	defer p.targets.lock(n.Iqn)()
	paths, err := l.paths(ctx)
	if err != nil {
		return "", err
	}
	return l.multipathDevice(ctx, paths)
}

// checkExclusive rejects a raw disk that another volume uses: they would share one directory.
func (p *Plugin) checkExclusive(r plugin.Request, id string) error {
	if !r.Block() {
		return nil
	}
	n, err := parseInfo(p.path(id))
	if err == nil && n.VolName != "" && n.VolName != r.Name() {
		return fmt.Errorf("iscsi: volume %s has the same disk as volume %s, which is in use", r.Name(), n.VolName)
	}
	return nil
}

// chap are the CHAP credentials for the target.
func (p *Plugin) chap(ctx context.Context, r plugin.Request, from source) (map[string][]byte, error) {
	if !from.DiscoveryCHAPAuth && !from.SessionCHAPAuth || from.secret == "" {
		return nil, nil
	}
	namespace := from.secretNamespace
	if namespace == "" {
		namespace = r.Pod.Namespace
	}
	got, err := p.deps.Secret(ctx, namespace, from.secret)
	if err != nil {
		return nil, fmt.Errorf("couldn't get secret %s/%s error: %w", namespace, from.secret, err)
	}
	return got.Data, nil
}

// login is the login of one volume at its target.
type login struct {
	*Plugin
	diskInfo
	source source
	chap   map[string][]byte
}

// iscsiadm runs the program. Its errors include the output.
func (p *Plugin) iscsiadm(ctx context.Context, args ...string) (string, error) {
	out, err := p.deps.Host.Runner.Run(ctx, "iscsiadm", args...)
	if output := strings.TrimSpace(out); err != nil && output != "" {
		err = fmt.Errorf("%w: %s", err, output)
	}
	return out, err
}

// exitedWith reports whether the program exited with one of the codes.
func exitedWith(err error, codes ...int) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && slices.Contains(codes, exit.ExitCode())
}

// cloneInterface creates an interface for the volume from the shown one, if the volume has its own
// initiator name.
func (l login) cloneInterface(ctx context.Context, shown string) error {
	if l.InitiatorName == "" {
		return nil
	}
	settings := map[string]string{}
	for line := range strings.Lines(shown) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), " = ")
		// The name of an interface cannot be changed.
		if ok && strings.HasPrefix(key, "iface.") && key != "iface.iscsi_ifacename" && value != "<empty>" {
			settings[key] = value
		}
	}
	settings["iface.initiatorname"] = l.InitiatorName
	if _, err := l.iscsiadm(ctx, "-m", "iface", "-I", l.Iface, "-o", "new"); err != nil && !exitedWith(err, codeExists) {
		return fmt.Errorf("iscsi: failed to create new iface: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		if _, err := l.iscsiadm(ctx, "-m", "iface", "-I", l.Iface, "-o", "update", "-n", key, "-v", settings[key]); err != nil {
			return errors.Join(fmt.Errorf("iscsi: failed to update iface records: %w", err), l.deleteInterface(ctx))
		}
	}
	return nil
}

// deleteInterface deletes the interface that cloneInterface created.
func (l login) deleteInterface(ctx context.Context) error {
	if l.InitiatorName == "" {
		return nil
	}
	_, err := l.iscsiadm(ctx, "-m", "iface", "-I", l.Iface, "-o", "delete")
	if exitedWith(err, codeNoSession, codeNoObjects) {
		return nil
	}
	return err
}

// paths logs in at every portal and returns the disks.
func (l login) paths(ctx context.Context) ([]string, error) {
	found, last := map[string]string{}, error(nil)
	for round := 1; round <= maxRounds; round++ {
		for _, portal := range l.Portals {
			if found[portal] != "" {
				continue
			}
			disk, err := l.path(ctx, portal)
			if err != nil {
				last = err
				continue
			}
			found[portal] = disk
		}
		if len(found) == 0 {
			return nil, errors.Join(fmt.Errorf("failed to get any path for iscsi disk, last err seen:\n%w", last), l.deleteInterface(ctx))
		}
		if len(found) == len(l.Portals) || len(found) >= minPaths && round >= minRounds {
			break
		}
	}
	return slices.Sorted(maps.Values(found)), nil
}

// path is the disk through one portal.
func (l login) path(ctx context.Context, portal string) (string, error) {
	lun, err := strconv.Atoi(l.Lun)
	if err != nil {
		return "", fmt.Errorf("iscsi: lun is not a number: %w", err)
	}
	session, ok, err := l.session(portal)
	if err != nil {
		return "", err
	}
	if !ok {
		if err := l.logIn(ctx, portal); err != nil {
			return "", err
		}
		if session, ok, err = l.session(portal); err != nil || !ok {
			return "", errors.Join(fmt.Errorf("iscsi: logged in at portal %s, but there is no session in sysfs", portal), err)
		}
	}
	if err := l.deps.Host.Scan(session.Host, lun); err != nil {
		return "", fmt.Errorf("iscsi: scan for LUN %d: %w", lun, err)
	}
	disk, err := l.pollUntil(ctx, lunTimeout, func() (string, error) { return l.deps.Host.LUN(session, lun) })
	if err == nil && disk == "" {
		err = fmt.Errorf("iscsi: target %s has no LUN %d at portal %s after %v", l.Iqn, lun, portal, lunTimeout)
	}
	return disk, err
}

func (l login) session(portal string) (scsi.Session, bool, error) {
	all, err := l.deps.Host.Sessions(l.Iqn)
	if err != nil {
		return scsi.Session{}, false, err
	}
	i := slices.IndexFunc(all, func(s scsi.Session) bool { return slices.Contains(s.Portals, portal) })
	if i < 0 {
		return scsi.Session{}, false, nil
	}
	return all[i], true, nil
}

// pollUntil calls look until it returns a value, or until the timeout.
func (l login) pollUntil(ctx context.Context, timeout time.Duration, look func() (string, error)) (string, error) {
	for end := l.deps.Clock.Now().Add(timeout); ; {
		seen, err := look()
		if err != nil || seen != "" || !l.deps.Clock.Now().Before(end) {
			return seen, err
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-l.deps.Clock.After(pollPeriod):
		}
	}
}

// multipathDevice is the multipath device of the paths, or the first path if there is none.
func (l login) multipathDevice(ctx context.Context, paths []string) (string, error) {
	timeout := time.Duration(0)
	if len(l.Portals) > 1 {
		timeout = multipathTimeout
	}
	device, err := l.pollUntil(ctx, timeout, func() (string, error) {
		for _, path := range paths {
			if multipath, err := l.deps.Host.Multipath(path); err != nil || multipath != "" {
				return multipath, err
			}
		}
		return "", nil
	})
	if err != nil || device != "" {
		return device, err
	}
	return paths[0], nil
}
