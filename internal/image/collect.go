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

// Reasons to remove an image: values of a metric's label.
const (
	reasonAge   = "age"
	reasonSpace = "space"
)

// Collect removes images that exceed MaxAge. If the disk usage is above High, it also removes
// the least recently used images until the usage is at most Low, and fails if it cannot.
func (c *Collector) Collect(ctx context.Context) error {
	release, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	now := c.deps.Clock.Now()
	if c.firstScan.IsZero() {
		c.firstScan = now
	}
	unused, err := c.findUnused(ctx, now)
	if err != nil {
		return err
	}
	if unused, err = c.removeOld(ctx, unused, now); err != nil {
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
	c.deps.Log.Info("image gc: disk usage over high threshold", "used", disk.used(), "high", c.cfg.High, "low", c.cfg.Low)
	return c.freeSpace(ctx, unused, disk, now)
}

// RemoveUnused removes every unused image. Eviction calls it under disk pressure.
func (c *Collector) RemoveUnused(ctx context.Context) error {
	release, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	now := c.deps.Clock.Now()
	unused, err := c.findUnused(ctx, now)
	if err != nil {
		return err
	}
	_, err = c.remove(ctx, unused, func(int64) bool { return false }, now)
	c.reportRemaining(ctx, now)
	return err
}

// acquire waits until no other collection runs.
func (c *Collector) acquire(ctx context.Context) (release func(), err error) {
	select {
	case c.semaphore <- struct{}{}:
		return func() { <-c.semaphore }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for another image collection: %w", ctx.Err())
	}
}

// findUnused returns the images that no container uses. It lists images before containers, so
// that an image which came into use in between is within its start grace period.
func (c *Collector) findUnused(ctx context.Context, now time.Time) ([]candidate, error) {
	all, err := c.deps.Images.ListImages(ctx)
	if err != nil {
		return nil, err
	}
	used, err := c.deps.InUse(ctx)
	if err != nil {
		return nil, fmt.Errorf("find the images in use: %w", err)
	}
	return c.usage.update(all, used, now), nil
}

// removeOld removes images that were unused for MaxAge, and returns the others. It removes
// nothing until MaxAge after the first scan, because earlier use is unknown.
func (c *Collector) removeOld(ctx context.Context, unused []candidate, now time.Time) (rest []candidate, err error) {
	if c.cfg.MaxAge == 0 || now.Sub(c.firstScan) <= c.cfg.MaxAge {
		return unused, nil
	}
	var failures []error
	for _, i := range unused {
		if now.Sub(i.lastUsed) <= c.cfg.MaxAge {
			rest = append(rest, i)
			continue
		}
		if err := c.removeOne(ctx, i, reasonAge); err != nil {
			failures = append(failures, err)
			rest = append(rest, i)
		}
	}
	if err := utilerrors.NewAggregate(failures); err != nil {
		return rest, fmt.Errorf("remove images that were not used for %v: %w", c.cfg.MaxAge, err)
	}
	return rest, nil
}

// freeSpace removes images until the disk usage is at most Low. It measures the disk after
// each removal: images share layers, and runtimes report compressed sizes.
func (c *Collector) freeSpace(ctx context.Context, unused []candidate, disk Disk, now time.Time) error {
	before, target := disk, disk.excess(c.cfg.Low)
	enough := func(reported int64) bool {
		if measured, err := c.measure(c.dir); err == nil {
			disk = measured
		}
		// If the runtime frees space asynchronously, the reported sizes decide; otherwise every
		// image would be removed.
		asynchronous := disk.Available <= before.Available && reported >= target
		return disk.excess(c.cfg.Low) <= 0 || asynchronous
	}
	reported, err := c.remove(ctx, unused, enough, now)
	c.reportRemaining(ctx, now)
	if err != nil {
		return fmt.Errorf("make room for %d bytes: %w", target, err)
	}
	freed := int64(disk.Available) - int64(before.Available)
	if freed >= target || freed <= 0 && reported >= target {
		return nil
	}
	message := fmt.Sprintf("Insufficient free disk space on the node's image filesystem (%d%% of %s used). "+
		"Failed to free sufficient space by deleting unused images (freed %d bytes). "+
		"Investigate disk usage, as it could be used by active images, logs, volumes, or other data.",
		before.used(), formatSize(before.Capacity), max(freed, 0))
	c.deps.Events.Eventf(c.deps.Node, v1.EventTypeWarning, "FreeDiskSpaceFailed", "%s", message)
	return errors.New(message)
}

// remove removes one image after the other until enough, called with the sum of their reported
// sizes, returns true. It returns that sum.
func (c *Collector) remove(ctx context.Context, unused []candidate, enough func(reported int64) bool, now time.Time) (reported int64, err error) {
	var failures []error
	for _, i := range unused {
		if i.inStartGrace(now) || now.Sub(i.firstSeen) < c.cfg.MinAge {
			continue
		}
		if err := c.removeOne(ctx, i, reasonSpace); err != nil {
			failures = append(failures, err)
			continue
		}
		if reported += int64(i.size); enough(reported) {
			break
		}
	}
	return reported, utilerrors.NewAggregate(failures)
}

func (c *Collector) removeOne(ctx context.Context, i candidate, reason string) error {
	c.deps.Log.Info("image gc: removing unused image", "image", i.id, "size", i.size, "reason", reason, "lastUsed", i.lastUsed)
	if err := c.deps.Images.RemoveImage(ctx, &runtimeapi.ImageSpec{Image: i.id, RuntimeHandler: i.handler}); err != nil {
		return err
	}
	c.usage.forget(i.id)
	c.deps.Collected.Inc(reason)
	return nil
}

// reportRemaining passes the images that remain to deps.Remaining. A failure is harmless: the next
// collection reports them again.
func (c *Collector) reportRemaining(ctx context.Context, began time.Time) {
	if c.deps.Remaining == nil {
		return
	}
	all, err := c.deps.Images.ListImages(ctx)
	if err != nil {
		c.deps.Log.Warn("image gc: cannot list remaining images", "err", err)
		return
	}
	ids := make([]string, 0, len(all))
	for _, i := range all {
		ids = append(ids, i.Id)
	}
	c.deps.Remaining(ids, began)
}
