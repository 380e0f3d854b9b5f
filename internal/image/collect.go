package image

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Why an image was removed, as it is counted.
const (
	tooOld    = "age"
	needsRoom = "space"
)

// Collect removes images that are too old, and, if the disk is fuller than High, those that
// were not used for longest until it is no fuller than Low. It is an error if that cannot be
// had.
func (c *Collector) Collect(ctx context.Context) error {
	release, err := c.wait(ctx)
	if err != nil {
		return err
	}
	defer release()
	now := c.deps.Clock.Now()
	if c.began.IsZero() {
		c.began = now
	}
	free, err := c.look(ctx, now)
	if err != nil {
		return err
	}
	if free, err = c.removeOld(ctx, free, now); err != nil {
		return err
	}
	disk, err := c.disk(ctx)
	if err != nil {
		if errors.Is(err, errNoCapacity) {
			c.deps.Events.Eventf(c.deps.Node, v1.EventTypeWarning, "InvalidDiskCapacity", "%s", err)
		}
		return err
	}
	if disk.used() < c.cfg.High {
		return nil
	}
	c.deps.Log.Info("the disk with the images is filling up", "used", disk.used(), "high", c.cfg.High, "low", c.cfg.Low)
	return c.makeRoom(ctx, free, disk, now)
}

// RemoveUnused removes every image that nobody uses, for a node that runs out of disk.
func (c *Collector) RemoveUnused(ctx context.Context) error {
	release, err := c.wait(ctx)
	if err != nil {
		return err
	}
	defer release()
	now := c.deps.Clock.Now()
	free, err := c.look(ctx, now)
	if err != nil {
		return err
	}
	_, err = c.remove(ctx, free, func(int64) bool { return false }, now)
	c.tellLeft(ctx, now)
	return err
}

// wait is for one's turn.
func (c *Collector) wait(ctx context.Context) (release func(), err error) {
	select {
	case c.turn <- struct{}{}:
		return func() { <-c.turn }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for another image collection: %w", ctx.Err())
	}
}

// look finds the images that nobody uses. What is used is asked for after what is there, so
// that an image which is used from now on is one that was promised.
func (c *Collector) look(ctx context.Context, now time.Time) ([]candidate, error) {
	all, err := c.deps.Images.ListImages(ctx)
	if err != nil {
		return nil, err
	}
	used, err := c.deps.InUse(ctx)
	if err != nil {
		return nil, fmt.Errorf("find the images in use: %w", err)
	}
	return c.uses.look(all, used, now), nil
}

// removeOld removes what was not used for MaxAge, and returns the rest. Until that long has
// passed since the first look, nobody knows that it was not.
func (c *Collector) removeOld(ctx context.Context, free []candidate, now time.Time) (rest []candidate, err error) {
	if c.cfg.MaxAge == 0 || now.Sub(c.began) <= c.cfg.MaxAge {
		return free, nil
	}
	var failures []error
	for _, i := range free {
		if now.Sub(i.last) <= c.cfg.MaxAge {
			rest = append(rest, i)
			continue
		}
		if err := c.removeOne(ctx, i, tooOld); err != nil {
			failures = append(failures, err)
			rest = append(rest, i)
		}
	}
	if err := utilerrors.NewAggregate(failures); err != nil {
		return rest, fmt.Errorf("remove images that were not used for %v: %w", c.cfg.MaxAge, err)
	}
	return rest, nil
}

// makeRoom removes images until the disk is no fuller than Low. What a removal gives is
// measured: images share layers, and runtimes tell the size of what they fetched rather
// than of what they unpacked.
func (c *Collector) makeRoom(ctx context.Context, free []candidate, disk Disk, now time.Time) error {
	before, wanted := disk, disk.excess(c.cfg.Low)
	enough := func(told int64) bool {
		if measured, err := c.measure(c.dir); err == nil {
			disk = measured
		}
		// A runtime that frees space later must not be asked for all.
		later := disk.Available <= before.Available && told >= wanted
		return disk.excess(c.cfg.Low) <= 0 || later
	}
	told, err := c.remove(ctx, free, enough, now)
	c.tellLeft(ctx, now)
	if err != nil {
		return fmt.Errorf("make room for %d bytes: %w", wanted, err)
	}
	freed := int64(disk.Available) - int64(before.Available)
	if freed >= wanted || freed <= 0 && told >= wanted {
		return nil
	}
	message := fmt.Sprintf("Insufficient free disk space on the node's image filesystem (%d%% of %s used). "+
		"Failed to free sufficient space by deleting unused images (freed %d bytes). "+
		"Investigate disk usage, as it could be used by active images, logs, volumes, or other data.",
		before.used(), size(before.Capacity), max(freed, 0))
	c.deps.Events.Eventf(c.deps.Node, v1.EventTypeWarning, "FreeDiskSpaceFailed", "%s", message)
	return errors.New(message)
}

// remove takes one image after the other until there is enough, which is asked with the sum
// of their sizes; it returns that sum.
func (c *Collector) remove(ctx context.Context, free []candidate, enough func(told int64) bool, now time.Time) (told int64, err error) {
	var failures []error
	for _, i := range free {
		if i.promised(now) || now.Sub(i.seen) < c.cfg.MinAge {
			continue
		}
		if err := c.removeOne(ctx, i, needsRoom); err != nil {
			failures = append(failures, err)
			continue
		}
		if told += int64(i.size); enough(told) {
			break
		}
	}
	return told, utilerrors.NewAggregate(failures)
}

func (c *Collector) removeOne(ctx context.Context, i candidate, why string) error {
	c.deps.Log.Info("removing an image that nobody uses", "image", i.id, "size", i.size, "why", why, "lastUsed", i.last)
	if err := c.deps.Images.RemoveImage(ctx, &runtimeapi.ImageSpec{Image: i.id, RuntimeHandler: i.handler}); err != nil {
		return err
	}
	c.uses.forget(i.id)
	c.deps.Collected.Inc(why)
	return nil
}

// tellLeft tells what is still there. Not to know does no harm: it is told again.
func (c *Collector) tellLeft(ctx context.Context, began time.Time) {
	if c.deps.Left == nil {
		return
	}
	all, err := c.deps.Images.ListImages(ctx)
	if err != nil {
		c.deps.Log.Warn("the images that are left are not known", "err", err)
		return
	}
	ids := make([]string, 0, len(all))
	for _, i := range all {
		ids = append(ids, i.Id)
	}
	c.deps.Left(ids, began)
}
