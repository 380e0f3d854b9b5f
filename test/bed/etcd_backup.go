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

func (c *ControlPlane) etcdDir() string    { return filepath.Join(c.slot.dir, "etcd") }
func (c *ControlPlane) etcdBackup() string { return filepath.Join(c.slot.dir, "etcd-backup") }

// BackUpEtcd stops etcd, copies its data, starts it again, and returns when the API server is
// ready.
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

// RestoreEtcd replaces etcd's data with that of BackUpEtcd, so that resource versions go back.
// As Kubernetes requires after a restore, it restarts the whole control plane. It returns when
// the API server is ready.
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

// restartControllers does not wait until they run: nodes do not need them.
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

// copyDir replaces the directory to with a copy of from.
func copyDir(ctx context.Context, from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	if out, err := exec.CommandContext(ctx, "cp", "-a", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy %s: %w: %s", from, err, out)
	}
	return nil
}
