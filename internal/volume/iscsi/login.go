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

// How hard all portals of a target are tried before fewer must do, as the reference kubelet.
const (
	enoughPaths = 2 // at least, from the second round on
	fewRounds   = 2
	manyRounds  = 5 // then even one path will do
)

const (
	// lunPatience is how long the kernel may take to find a disk after it was told to look.
	lunPatience = 30 * time.Second
	// joinPatience is how long multipathd may take to join the paths of a disk.
	joinPatience = 10 * time.Second
	// lookAgain is the pause between looks for either: nobody tells.
	lookAgain = 100 * time.Millisecond
)

// Exit codes of iscsiadm.
const (
	codeNoSession = 2
	codeExists    = 15
	codeNoObjects = 21
)

// Connect logs in to the target by all its portals and returns the disk.
func (p *Plugin) Connect(ctx context.Context, r plugin.Request) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout) // half a login is left to nobody
	defer cancel()
	from := sourceOf(r.Spec)
	n := from.note(r.Name())
	chap, err := p.chap(ctx, r, from)
	if err != nil {
		return "", err
	}
	id := from.id(r.Spec)
	if err := p.alone(r, id); err != nil {
		return "", err
	}
	l := login{Plugin: p, note: n, source: from, chap: chap}
	shown, err := l.iscsiadm(ctx, "-m", "iface", "-I", l.InitIface, "-o", "show")
	if err != nil {
		return "", fmt.Errorf("iscsi: could not read iface %s error: %w", l.InitIface, err)
	}
	// Whatever happens from here on, the note says how to undo it.
	if err := p.write(n, p.path(id)); err != nil {
		return "", err
	}
	if err := l.clone(ctx, shown); err != nil {
		return "", err
	}
	defer p.targets.lock(n.Iqn)()
	paths, err := l.paths(ctx)
	if err != nil {
		return "", err
	}
	return l.joined(ctx, paths)
}

// alone refuses a raw disk that another volume has by another name: what is on the node's
// disk could not tell them apart.
func (p *Plugin) alone(r plugin.Request, id string) error {
	if !r.Block() {
		return nil
	}
	n, err := parse(p.path(id))
	if err == nil && n.VolName != "" && n.VolName != r.Name() {
		return fmt.Errorf("iscsi: volume %s has the same disk as volume %s, which is in use", r.Name(), n.VolName)
	}
	return nil
}

// chap are the names and passwords for the target.
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

// login is one volume's way to its target.
type login struct {
	*Plugin
	note
	source source
	chap   map[string][]byte
}

// iscsiadm runs the program and says in an error what it said.
func (p *Plugin) iscsiadm(ctx context.Context, args ...string) (string, error) {
	out, err := p.deps.Host.Runner.Run(ctx, "iscsiadm", args...)
	if said := strings.TrimSpace(out); err != nil && said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return out, err
}

// exited reports whether a program ended with one of the codes.
func exited(err error, codes ...int) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && slices.Contains(codes, exit.ExitCode())
}

// clone makes an interface for the volume alone, from the one that is shown, where it wants
// another name for the initiator.
func (l login) clone(ctx context.Context, shown string) error {
	if l.InitiatorName == "" {
		return nil
	}
	settings := map[string]string{}
	for line := range strings.Lines(shown) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), " = ")
		// An interface keeps the name it was made with.
		if ok && strings.HasPrefix(key, "iface.") && key != "iface.iscsi_ifacename" && value != "<empty>" {
			settings[key] = value
		}
	}
	settings["iface.initiatorname"] = l.InitiatorName
	if _, err := l.iscsiadm(ctx, "-m", "iface", "-I", l.Iface, "-o", "new"); err != nil && !exited(err, codeExists) {
		return fmt.Errorf("iscsi: failed to create new iface: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		if _, err := l.iscsiadm(ctx, "-m", "iface", "-I", l.Iface, "-o", "update", "-n", key, "-v", settings[key]); err != nil {
			return errors.Join(fmt.Errorf("iscsi: failed to update iface records: %w", err), l.deleteInterface(ctx))
		}
	}
	return nil
}

// deleteInterface removes the interface that clone made.
func (l login) deleteInterface(ctx context.Context) error {
	if l.InitiatorName == "" {
		return nil
	}
	_, err := l.iscsiadm(ctx, "-m", "iface", "-I", l.Iface, "-o", "delete")
	if exited(err, codeNoSession, codeNoObjects) {
		return nil
	}
	return err
}

// paths logs in by every portal and returns the disks that this brought.
func (l login) paths(ctx context.Context) ([]string, error) {
	found, last := map[string]string{}, error(nil)
	for round := 1; round <= manyRounds; round++ {
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
		if len(found) == len(l.Portals) || len(found) >= enoughPaths && round >= fewRounds {
			break
		}
	}
	return slices.Sorted(maps.Values(found)), nil
}

// path is the disk as it is reached by one portal.
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
			return "", errors.Join(fmt.Errorf("iscsi: logged in at portal %s, but the kernel shows no session", portal), err)
		}
	}
	if err := l.deps.Host.Scan(session.Host, lun); err != nil {
		return "", fmt.Errorf("iscsi: look for LUN %d: %w", lun, err)
	}
	disk, err := l.await(ctx, lunPatience, func() (string, error) { return l.deps.Host.LUN(session, lun) })
	if err == nil && disk == "" {
		err = fmt.Errorf("iscsi: target %s shows no LUN %d at portal %s after %v", l.Iqn, lun, portal, lunPatience)
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

// await looks until there is something to see, or patience ends.
func (l login) await(ctx context.Context, patience time.Duration, look func() (string, error)) (string, error) {
	for end := l.deps.Clock.Now().Add(patience); ; {
		seen, err := look()
		if err != nil || seen != "" || !l.deps.Clock.Now().Before(end) {
			return seen, err
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-l.deps.Clock.After(lookAgain):
		}
	}
}

// joined is the device that joins the paths, where there are several and the node does that,
// else the first.
func (l login) joined(ctx context.Context, paths []string) (string, error) {
	patience := time.Duration(0)
	if len(l.Portals) > 1 {
		patience = joinPatience
	}
	device, err := l.await(ctx, patience, func() (string, error) {
		for _, path := range paths {
			if joined, err := l.deps.Host.Multipath(path); err != nil || joined != "" {
				return joined, err
			}
		}
		return "", nil
	})
	if err != nil || device != "" {
		return device, err
	}
	return paths[0], nil
}
