package image

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

// fakeStore is an image store on a disk of its own. An image takes twice its reported size.
type fakeStore struct {
	images   []*runtimeapi.Image
	capacity uint64
	other    uint64 // bytes on the disk that are not images
	slow     bool   // frees space asynchronously
	stuck    string // id of an image that cannot be removed
	removed  []string
	fsErr    error
}

func (s *fakeStore) ListImages(context.Context) ([]*runtimeapi.Image, error) {
	return slices.Clone(s.images), nil
}

func (s *fakeStore) RemoveImage(_ context.Context, i *runtimeapi.ImageSpec) error {
	if i.Image == s.stuck {
		return errors.New("stuck")
	}
	s.removed = append(s.removed, i.Image)
	s.images = slices.DeleteFunc(s.images, func(o *runtimeapi.Image) bool {
		if o.Id == i.Image && s.slow {
			s.other += 2 * o.Size
		}
		return o.Id == i.Image
	})
	return nil
}

func (s *fakeStore) ImageFsInfo(context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: []*runtimeapi.FilesystemUsage{
		{FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: "/images"}}}}, s.fsErr
}

func (s *fakeStore) disk(string) (Disk, error) {
	used := s.other
	for _, i := range s.images {
		used += 2 * i.Size
	}
	return Disk{Capacity: s.capacity, Available: s.capacity - used}, nil
}

func (s *fakeStore) add(ids ...string) {
	for _, id := range ids {
		s.images = append(s.images, &runtimeapi.Image{Id: id, Size: 50, RepoTags: []string{"tag-" + id}, Pinned: strings.HasPrefix(id, "pinned")})
	}
}

// collectorFixture is a collector on a fakeStore with space for ten images.
type collectorFixture struct {
	*Collector
	*fakeStore
	clock  *clocktesting.FakeClock
	events events
	used   []string
	left   []string
	counts map[string]int
}

func newCollectorFixture(t *testing.T, cfg CollectorConfig) *collectorFixture {
	t.Helper()
	c := &collectorFixture{fakeStore: &fakeStore{capacity: 1000}, clock: clocktesting.NewFakeClock(time.Unix(1e6, 0)), counts: map[string]int{}}
	var err error
	c.Collector, err = NewCollector(cfg, CollectorDeps{
		Images: c.fakeStore, Disk: c.fakeStore.disk, Events: &c.events, Node: &v1.ObjectReference{Kind: "Node", Name: "n"},
		InUse:     func(context.Context) ([]string, error) { return c.used, nil },
		Remaining: func(ids []string, _ time.Time) { c.left = ids },
		Collected: func(why string) { c.counts[why]++ },
		Clock:     c.clock, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// collectAfterHour advances the clock by an hour and collects while these images are in use.
func (c *collectorFixture) collectAfterHour(t *testing.T, used ...string) {
	t.Helper()
	c.clock.Step(time.Hour)
	c.used = used
	if err := c.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
}

var defaultThresholds = CollectorConfig{High: 85, Low: 60, MinAge: 2 * time.Minute}

func TestCollectLeastRecentlyUsedFirst(t *testing.T) {
	c := newCollectorFixture(t, defaultThresholds)
	c.add("pinned", "never", "a", "b", "c", "d", "e")
	c.collectAfterHour(t, "tag-a", "b", "c", "d", "e")
	c.collectAfterHour(t, "c", "d", "e", "a")
	c.collectAfterHour(t, "d", "e")
	c.clock.Step(time.Hour)
	c.MarkUsed("d")
	c.collectAfterHour(t, "e")
	if len(c.removed) > 0 {
		t.Fatalf("removed below the threshold: %v", c.removed)
	}
	c.add("new", "new2") // nine of ten
	c.clock.Step(time.Second)
	if err := c.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"never", "b", "a"}, c.removed); diff != "" {
		t.Errorf("removed: -want +got\n%s", diff)
	}
	if diff := cmp.Diff([]string{"pinned", "c", "d", "e", "new", "new2"}, c.left); diff != "" {
		t.Errorf("reported as remaining: -want +got\n%s", diff)
	}
	if c.counts["space"] != 3 || len(c.events.seen) > 0 {
		t.Errorf("counted %v, events %v", c.counts, c.events.seen)
	}
}

// Where a store frees space asynchronously, the collector relies on the reported sizes and does
// not remove every image.
func TestCollectFromAsynchronousStore(t *testing.T) {
	c := newCollectorFixture(t, defaultThresholds)
	c.slow = true
	c.add("a", "b", "c", "d", "e", "f", "g", "h", "i")
	c.clock.Step(time.Hour)
	_ = c.Collect(t.Context()) // all are new
	c.clock.Step(time.Hour)
	if err := c.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(c.removed) != 6 { // 300 bytes at 50 each
		t.Errorf("removed %v", c.removed)
	}
}

func TestCollectCannotFreeEnough(t *testing.T) {
	c := newCollectorFixture(t, defaultThresholds)
	c.add("held", "given", "filler", "pinned", "loose")
	c.other = 400
	c.clock.Step(time.Hour)
	c.used = []string{"held", "given", "loose", "filler"}
	c.round(t.Context())
	c.clock.Step(time.Hour)
	c.images = slices.DeleteFunc(c.images, func(i *runtimeapi.Image) bool { return i.Id == "filler" })
	c.used = c.used[:1]
	c.MarkUsed("given")
	c.add("young")
	c.events.seen = nil
	c.round(t.Context())
	if diff := cmp.Diff([]string{"loose"}, c.removed); diff != "" || len(c.left) != 4 {
		t.Errorf("removed %v, left %v", c.removed, c.left)
	}
	const message = " Warning %s Insufficient free disk space on the node's image filesystem (90%% of 1000 B used). " +
		"Failed to free sufficient space by deleting unused images (freed 100 bytes). " +
		"Investigate disk usage, as it could be used by active images, logs, volumes, or other data."
	plain := strings.ReplaceAll(message, "%%", "%")
	want := []string{strings.Replace(plain, "%s", "FreeDiskSpaceFailed", 1), strings.Replace(plain, "%s", "ImageGCFailed", 1)}
	if diff := cmp.Diff(want, c.events.seen); diff != "" {
		t.Errorf("events: -want +got\n%s", diff)
	}
}

func TestCollectOverMaximumAge(t *testing.T) {
	c := newCollectorFixture(t, CollectorConfig{High: 100, Low: 100, MaxAge: 3 * time.Hour})
	c.add("unused", "used", "recent", "pinned")
	c.collectAfterHour(t, "used", "recent")
	c.collectAfterHour(t, "used", "recent")
	c.collectAfterHour(t, "used")
	c.collectAfterHour(t, "used")
	if len(c.removed) > 0 {
		t.Fatalf("removed before their age is known: %v", c.removed)
	}
	c.collectAfterHour(t, "used")
	if diff := cmp.Diff([]string{"unused"}, c.removed); diff != "" {
		t.Errorf("removed: -want +got\n%s", diff)
	}
	c.collectAfterHour(t, "used")
	if diff := cmp.Diff([]string{"unused", "recent"}, c.removed); diff != "" || c.counts["age"] != 2 {
		t.Errorf("removed: -want +got\n%s\ncounted %v", diff, c.counts)
	}
}

func TestRemoveUnused(t *testing.T) {
	c := newCollectorFixture(t, CollectorConfig{High: 100, Low: 90})
	c.add("a", "stuck", "b", "pinned", "held")
	c.used, c.stuck = []string{"held"}, "stuck"
	if err := c.RemoveUnused(t.Context()); err == nil || !strings.Contains(err.Error(), "stuck") {
		t.Errorf("image that cannot be removed: %v", err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, c.removed); diff != "" {
		t.Errorf("removed: -want +got\n%s", diff)
	}
}

// A pull that fills the disk starts a collection at once; other pulls cost no call to the runtime.
func TestPullThatFillsDiskStartsCollection(t *testing.T) {
	c := newCollectorFixture(t, defaultThresholds)
	ctx, cancel := context.WithCancel(t.Context())
	c.add("a", "b", "c", "d", "e", "f", "g")
	collected := make(chan []string)
	c.deps.Remaining = func(ids []string, _ time.Time) { collected <- ids }
	done := make(chan error)
	go func() { done <- c.Run(ctx) }()
	for !c.clock.HasWaiters() {
		time.Sleep(time.Millisecond)
	}
	c.clock.SetTime(c.clock.Now().Add(4 * time.Minute)) // not yet time for a round
	c.ImagePulled()
	select {
	case <-c.wake:
		t.Error("woken although there is space")
	default:
	}
	c.add("h", "i")
	c.ImagePulled()
	if left := <-collected; len(left) != 6 {
		t.Errorf("left: %v", left)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestCollectorFailures(t *testing.T) {
	c := newCollectorFixture(t, defaultThresholds)
	c.fsErr = errors.New("not yet")
	c.round(t.Context())
	if len(c.events.seen) > 0 {
		t.Errorf("event for the first failure: %v", c.events.seen)
	}
	c.round(t.Context())
	if diff := cmp.Diff([]string{" Warning ImageGCFailed not yet"}, c.events.seen); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	c.fsErr, c.capacity, c.events.seen = nil, 0, nil
	if err := c.Collect(t.Context()); !errors.Is(err, errNoCapacity) {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{" Warning InvalidDiskCapacity invalid capacity 0 on image filesystem"}, c.events.seen); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for _, bad := range []CollectorConfig{{High: 101}, {High: 10, Low: 11}, {Low: -1}, {MinAge: -1}} {
		if _, err := NewCollector(bad, c.deps); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}

func TestFormatSize(t *testing.T) {
	for bytes, want := range map[uint64]string{1023: "1023 B", 1024: "1.0 KiB", 1536 << 10: "1.5 MiB", 3 << 30: "3.0 GiB", 4096 << 40: "4096.0 TiB"} {
		if got := formatSize(bytes); got != want {
			t.Errorf("%d: %s, want %s", bytes, got, want)
		}
	}
}
