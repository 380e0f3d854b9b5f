package bed

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// etcdGrace is how long etcd may take to close its files.
const etcdGrace = 10 * time.Second

func (c *ControlPlane) etcdDir() string    { return filepath.Join(c.site.dir, "etcd") }
func (c *ControlPlane) etcdBackup() string { return filepath.Join(c.site.dir, "etcd-backup") }

// BackUpEtcd copies etcd's data, for which etcd is stopped, and returns when the API server
// is ready again.
func (c *ControlPlane) BackUpEtcd(ctx context.Context) error {
	if err := c.etcd.stop(etcdGrace); err != nil {
		return err
	}
	if err := copyDir(ctx, c.etcdDir(), c.etcdBackup()); err != nil {
		return err
	}
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	return c.awaitAPIServer(ctx)
}

// RestoreEtcd puts the data of BackUpEtcd in the place of etcd's, so that resource versions
// go back. As after any restore, the whole control plane is restarted. It returns when the
// API server is ready again.
func (c *ControlPlane) RestoreEtcd(ctx context.Context) error {
	if err := c.StopAPIServer(); err != nil {
		return err
	}
	if err := c.etcd.stop(etcdGrace); err != nil {
		return err
	}
	if err := copyDir(ctx, c.etcdBackup(), c.etcdDir()); err != nil {
		return err
	}
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	if err := c.StartAPIServer(ctx); err != nil {
		return err
	}
	return c.restartControllers()
}

// restartControllers does not wait until they run: no node does.
func (c *ControlPlane) restartControllers() (err error) {
	for i, d := range c.controllers {
		if err := d.kill(); err != nil {
			return err
		}
		if c.controllers[i], err = c.run(d.name, d.cmd.Args[1:]...); err != nil {
			return err
		}
	}
	return nil
}

// copyDir makes to a copy of from, whatever was there.
func copyDir(ctx context.Context, from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	if out, err := exec.CommandContext(ctx, "cp", "-a", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy %s: %w: %s", from, err, out)
	}
	return nil
}
