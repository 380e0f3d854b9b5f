package bugreport

import (
	"context"
	"fmt"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// plainOptions are mount options whose values are kept. Others, such as those of network file systems, may be
// credentials.
var plainOptions = fields(`size mode uid gid nr_inodes nr_blocks errors data commit vers proto sec rsize wsize timeo retrans local_lock
	cache msize access stripe logbufs logbsize sunit swidth subvolid subvol fmask dmask huge mpol prjquota usrquota grpquota nsdelegate memory_recursiveprot xattr fd pgrp name resuid resgid`)

// mounts lists the mounts below the kubelet's directories and the runtime's.
func (c *collector) mounts(context.Context) (string, error) {
	dirs := []string{c.settings.rootDir, "/run/containerd", "/var/lib/containerd", "/run/netns", "/sys/fs/cgroup"}
	if c.cfg.Root != "" {
		dirs = append(dirs, c.cfg.Root, c.cfg.RunDir)
	}
	found, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		for _, dir := range dirs {
			if m.Mountpoint == dir || strings.HasPrefix(m.Mountpoint, dir+"/") || m.Mountpoint == "/" {
				return false, false
			}
		}
		return true, false
	})
	if err != nil {
		return "", fmt.Errorf("read mounts: %w", err)
	}
	var b strings.Builder
	for _, m := range found {
		fmt.Fprintf(&b, "%d %d %d:%d %s on %s type %s from %s options %s; %s\n",
			m.ID, m.Parent, m.Major, m.Minor, m.Root, m.Mountpoint, m.FSType, m.Source, mountOptions(m.Options), mountOptions(m.VFSOptions))
	}
	return b.String(), nil
}

func mountOptions(list string) string {
	options := strings.Split(list, ",")
	for i, option := range options {
		if name, _, found := strings.Cut(option, "="); found && !plainOptions[name] {
			options[i] = name + "=" + redacted
		}
	}
	return strings.Join(options, ",")
}
