package eviction

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// format prints a threshold.
func format(t Threshold) string {
	text := fmt.Sprintf("%s < %s", t.Signal, t.Value.text(1000))
	if !t.hard() {
		text += fmt.Sprintf(" for %v", t.GracePeriod)
	}
	if margin := t.MinReclaim.of(1000); margin > 0 {
		text += fmt.Sprintf(" until +%d", margin)
	}
	return text
}

func formatAll(all []Threshold) []string {
	var texts []string
	for _, t := range all {
		texts = append(texts, format(t))
	}
	return texts
}

func TestThresholds(t *testing.T) {
	cases := []struct {
		name string
		from Settings
		want []string
	}{
		{"none", Settings{}, nil},
		{"most urgent first",
			Settings{Hard: map[string]string{"nodefs.available": "10%", "memory.available": "100Mi", "imagefs.inodesFree": "5%"}},
			[]string{"memory.available < 100Mi", "nodefs.available < 100", "imagefs.inodesFree < 50"}},
		{"allocatable memory with minimum reclaim", Settings{Hard: map[string]string{"memory.available": "100Mi"}, MinimumReclaim: map[string]string{"memory.available": "20"}, Allocatable: true},
			[]string{"memory.available < 100Mi until +20", "allocatableMemory.available < 100Mi until +20"}},
		{"hard before soft", Settings{Hard: map[string]string{"memory.available": "1"}, Soft: map[string]string{"memory.available": "2"},
			SoftGracePeriod: map[string]string{"memory.available": "1m30s"}, Allocatable: true},
			[]string{"memory.available < 1", "memory.available < 2 for 1m30s", "allocatableMemory.available < 1"}},
		{"turned off by 0% and 100%", Settings{Hard: map[string]string{"memory.available": "0%", "pid.available": "100%", "nodefs.available": "25%"}},
			[]string{"nodefs.available < 250"}},
		{"minimum reclaim as a percentage", Settings{Hard: map[string]string{"nodefs.available": "25%"}, MinimumReclaim: map[string]string{"nodefs.available": "5%"}},
			[]string{"nodefs.available < 250 until +50"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.from.Thresholds()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, formatAll(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestInvalidThresholds(t *testing.T) {
	cases := []struct {
		from Settings
		want string
	}{
		{Settings{Hard: map[string]string{"memory.avail": "1"}}, "evictionHard.memory.avail: is not an eviction signal"},
		{Settings{Hard: map[string]string{"memory.available": "lots"}}, `evictionHard.memory.available: "lots" is not a quantity`},
		{Settings{Hard: map[string]string{"memory.available": "-1"}}, "evictionHard.memory.available: must not be negative"},
		{Settings{Hard: map[string]string{"memory.available": "101%"}}, `"101%" is not between 0% and 100%`},
		{Settings{Soft: map[string]string{"memory.available": "1"}}, "evictionSoft.memory.available: needs evictionSoftGracePeriod.memory.available"},
		{Settings{Soft: map[string]string{"memory.available": "1"}, SoftGracePeriod: map[string]string{"memory.available": "-1s"}}, "is not a period of time"},
		{Settings{Hard: map[string]string{"memory.available": "1"}, MinimumReclaim: map[string]string{"memory.available": "x%"}}, `evictionMinimumReclaim.memory.available: "x%" is not a percentage`},
	}
	for _, c := range cases {
		if _, err := c.from.Thresholds(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, not %q", err, c.want)
		}
	}
}

func TestLayout(t *testing.T) {
	configured := []Threshold{
		{Signal: NodeFsAvailable, Value: bytes("1")}, {Signal: NodeFsInodesFree, Value: bytes("2"), GracePeriod: time.Second},
		{Signal: ImageFsAvailable, Value: bytes("3")}, {Signal: ContainerFsAvailable, Value: bytes("4")},
	}
	common := []string{"nodefs.available < 1", "nodefs.inodesFree < 2 for 1s", "imagefs.available < 3"}
	cases := []struct {
		name   string
		layout Layout
		want   []string // of the containers' file system
	}{
		{"one disk", Layout{}, []string{"containerfs.available < 1", "containerfs.inodesFree < 2 for 1s"}},
		{"a disk for images and containers", Layout{OwnImageFs: true}, []string{"containerfs.available < 3"}},
		{"a disk for images alone", Layout{OwnImageFs: true, OwnContainerFs: true}, []string{"containerfs.available < 1", "containerfs.inodesFree < 2 for 1s"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(append(common[:3:3], c.want...), formatAll(c.layout.withContainerFs(configured))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSpareAndParts(t *testing.T) {
	one, images, split := Layout{}, Layout{OwnImageFs: true}, Layout{OwnImageFs: true, OwnContainerFs: true}
	cases := []struct {
		layout             Layout
		signal             Signal
		containers, images bool
		storageParts       []storagePart
	}{
		{one, NodeFsAvailable, true, true, []storagePart{writableLayer, logs, volumes}},
		{one, ImageFsInodesFree, true, true, []storagePart{writableLayer, logs, volumes}},
		{one, ContainerFsAvailable, true, true, []storagePart{writableLayer, logs, volumes}},
		{images, NodeFsAvailable, false, false, []storagePart{logs, volumes}},
		{images, ImageFsAvailable, true, true, []storagePart{writableLayer}},
		{images, ContainerFsInodesFree, true, true, []storagePart{writableLayer}},
		{split, NodeFsInodesFree, true, false, []storagePart{writableLayer, logs, volumes}},
		{split, ImageFsAvailable, false, true, nil},
		{split, ContainerFsAvailable, true, false, []storagePart{writableLayer, logs, volumes}},
		{one, MemoryAvailable, false, false, nil},
		{one, PIDAvailable, false, false, nil},
	}
	for _, c := range cases {
		containers, images := c.layout.reclaimable(c.signal)
		if containers != c.containers || images != c.images {
			t.Errorf("%+v %s: spare are containers %v, images %v", c.layout, c.signal, containers, images)
		}
		if c.storageParts != nil || c.layout == split {
			if diff := cmp.Diff(c.storageParts, c.layout.storageParts(c.signal)); diff != "" {
				t.Errorf("%+v %s: %s", c.layout, c.signal, diff)
			}
		}
	}
}
