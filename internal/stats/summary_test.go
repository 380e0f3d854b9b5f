package stats

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"swiftlet/internal/pod"
)

// eachCgroupVersion runs a test with cgroup v1 and v2.
func eachCgroupVersion(t *testing.T, test func(*testing.T, *fakeNode)) {
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) { test(t, newFakeNode(t, version)) })
	}
}

func TestSummary(t *testing.T) {
	eachCgroupVersion(t, func(t *testing.T, w *fakeNode) {
		w.addPod("a")
		got, err := w.stats(nil).Summary(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Pods) != 1 || len(got.Pods[0].Containers) != 1 {
			t.Fatalf("pods: %+v", got.Pods)
		}
		p := got.Pods[0]
		c := p.Containers[0]
		for what, values := range map[string][2]uint64{
			"CPU time of the container":    {*c.CPU.UsageCoreNanoSeconds, 10e9},
			"CPU time of the pod":          {*p.CPU.UsageCoreNanoSeconds, 11e9},
			"CPU time of all pods":         {*got.Node.SystemContainers[0].CPU.UsageCoreNanoSeconds, 40e9},
			"CPU time of the node":         {*got.Node.CPU.UsageCoreNanoSeconds, 50e9},
			"usage over the life so far":   {*c.CPU.UsageNanoCores, 1e8},
			"memory":                       {*c.Memory.UsageBytes, 1000000},
			"working set":                  {*c.Memory.WorkingSetBytes, 700000},
			"resident memory":              {*c.Memory.RSSBytes, 500000},
			"page faults":                  {*p.Memory.PageFaults, 90},
			"major page faults":            {*p.Memory.MajorPageFaults, 11},
			"swap":                         {*c.Swap.SwapUsageBytes, 70},
			"processes":                    {*p.ProcessStats.ProcessCount, 1},
			"memory available to the node": {*got.Node.Memory.AvailableBytes, 1<<40 - *got.Node.Memory.WorkingSetBytes},
		} {
			if values[0] != values[1] {
				t.Errorf("%s: %d, want %d", what, values[0], values[1])
			}
		}
		if c.Memory.AvailableBytes != nil || c.Swap.SwapAvailableBytes != nil {
			t.Errorf("a container without limits has %v and %v available", c.Memory.AvailableBytes, c.Swap.SwapAvailableBytes)
		}
		if p.Network == nil || got.Node.Network == nil || *got.Node.Rlimit.MaxPID != 1000 || *got.Node.Rlimit.NumOfRunningProcesses == 0 {
			t.Errorf("network %v and %v, tasks %+v", p.Network, got.Node.Network, got.Node.Rlimit)
		}
		if !p.StartTime.Time.Equal(began) || !c.StartTime.Time.Equal(began) {
			t.Errorf("started %v and %v, want %v", p.StartTime, c.StartTime, began)
		}
	})
}

func TestPressure(t *testing.T) {
	eachCgroupVersion(t, func(t *testing.T, w *fakeNode) {
		w.addPod("a")
		want := statsapi.PSIStats{}
		if w.hierarchy.Version == 2 {
			want.Some = statsapi.PSIData{Total: 3000000, Avg10: 1.5, Avg60: 0.5, Avg300: 0.1}
		}
		got, err := w.stats(nil).Summary(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if c := got.Pods[0].Containers[0]; *c.CPU.PSI != want || c.IO == nil || c.IO.PSI == nil {
			t.Errorf("stalls: %+v, %+v, want %+v", c.CPU.PSI, c.IO, want)
		}
		off, err := w.stats(func(c *Config, _ *Deps) { c.PSI = false }).Summary(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if c := off.Pods[0].Containers[0]; c.CPU.PSI != nil || c.Memory.PSI != nil || c.IO != nil || off.Node.IO != nil {
			t.Errorf("got pressure although it is turned off: %+v", c)
		}
	})
}

func TestLimits(t *testing.T) {
	const path = "/kubepods/burstable/poduid-a/container-a"
	eachCgroupVersion(t, func(t *testing.T, w *fakeNode) {
		w.addPod("a")
		if w.hierarchy.Version == 1 {
			w.set(path, "memory", "memory.limit_in_bytes", "4000000")
			w.set(path, "memory", "memory.memsw.limit_in_bytes", "4000100")
		} else {
			w.set(path, "", "memory.max", "4000000")
			w.set(path, "", "memory.swap.max", "100")
		}
		s := w.stats(nil)
		available := func() (memory, swap uint64) {
			t.Helper()
			got, err := s.UsageSummary(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c := got.Pods[0].Containers[0]
			return *c.Memory.AvailableBytes, *c.Swap.SwapAvailableBytes
		}
		if memory, swap := available(); memory != 3300000 || swap != 30 {
			t.Errorf("%d bytes of memory and %d of swap available, want 3300000 and 30", memory, swap)
		}
		// With a limit below the usage, as after a resize, nothing is available.
		if w.hierarchy.Version == 1 {
			w.set(path, "memory", "memory.limit_in_bytes", "600000")
		} else {
			w.set(path, "", "memory.max", "600000")
		}
		if memory, _ := available(); memory != 0 {
			t.Errorf("%d bytes of memory available, want none", memory)
		}
	})
}

func TestRates(t *testing.T) {
	w := newFakeNode(t, 2)
	w.addPod("a")
	s := w.stats(nil)
	const path = "/kubepods/burstable/poduid-a/container-a"
	for _, step := range []struct {
		after   time.Duration
		seconds string // of CPU time so far, in microseconds
		want    uint64
		why     string
	}{
		{0, "10000000", 1e8, "first sample: over the lifetime"},
		{4 * time.Second, "14000000", 1e9, "one CPU since the first sample"},
		{500 * time.Millisecond, "16000000", 1333333333, "over 4.5 seconds"},
		{6 * time.Second, "16000000", 571428571, "over 10.5 seconds, which replaces the sample"},
		{100 * time.Millisecond, "16050000", 571428571, "too soon after the sample"},
		{1900 * time.Millisecond, "17000000", 5e8, "over the two seconds since the new sample"},
		{time.Second, "1000000", 8810572, "cgroup created again under the same name"},
	} {
		w.clock.SetTime(w.clock.Now().Add(step.after))
		w.set(path, "", "cpu.stat", "usage_usec "+step.seconds)
		got, err := s.UsageSummary(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if nanoCores := *got.Pods[0].Containers[0].CPU.UsageNanoCores; nanoCores != step.want {
			t.Errorf("%s: %d, want %d", step.why, nanoCores, step.want)
		}
	}
	if kept := len(s.rates.last); kept != 6 {
		t.Errorf("%d samples of 6 cgroups", kept)
	}
	w.pods = nil
	if _, err := s.UsageSummary(t.Context()); err != nil {
		t.Fatal(err)
	}
	if kept := len(s.rates.last); kept != 4 {
		t.Errorf("%d samples after the pod is gone, want 4", kept)
	}
}

func TestOnlyRunningContainers(t *testing.T) {
	w := newFakeNode(t, 2)
	w.addPod("runs")
	w.addPod("ended")
	w.pods[1].Containers[0].State = pod.Exited
	w.addPod("half")
	w.pods[2].Containers = append(w.pods[2].Containers, pod.Container{ID: "old", Name: "c", State: pod.Exited})
	w.group("/kubepods/podstranger", 1) // of a pod that the runtime does not have
	got, err := w.stats(nil).UsageSummary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range got.Pods {
		names = append(names, fmt.Sprint(p.PodRef.Name, len(p.Containers)))
	}
	if fmt.Sprint(names) != "[half1 runs1]" {
		t.Errorf("pods: %v", names)
	}
}

func TestStorage(t *testing.T) {
	w := newFakeNode(t, 2)
	o := w.addPod("a")
	w.runtime.layers["container-a"] = 1 << 20
	volume := t.TempDir()
	w.write(volume, "data", string(make([]byte, 100<<10)))
	if err := os.Link(filepath.Join(volume, "data"), filepath.Join(volume, "same")); err != nil {
		t.Fatal(err)
	}
	w.volumes[o.UID] = []pod.MeasurableVolume{{Name: "v", Dir: volume, Local: true, Claim: "claim"}, {Name: "gone", Dir: "/no/such/dir"}}
	w.write(filepath.Join(w.logs, o.LogDirName(), "c"), "0.log", "line\n")
	w.write(filepath.Join(w.rootDir, "pods", string(o.UID)), "etc-hosts", "127.0.0.1 localhost\n")

	s := w.stats(nil)
	summary := func() statsapi.PodStats {
		t.Helper()
		got, err := s.Summary(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return got.Pods[0]
	}
	p := summary()
	c := p.Containers[0]
	if *c.Rootfs.UsedBytes != 1<<20 || *c.Rootfs.InodesUsed != 3 || c.Rootfs.CapacityBytes == nil {
		t.Errorf("layer: %+v", c.Rootfs)
	}
	if *c.Logs.UsedBytes != 4096 || *c.Logs.InodesUsed != 1 {
		t.Errorf("logs: %d bytes in %d files", *c.Logs.UsedBytes, *c.Logs.InodesUsed)
	}
	if len(p.VolumeStats) != 1 {
		t.Fatalf("volumes: %+v", p.VolumeStats)
	}
	v := p.VolumeStats[0]
	if *v.InodesUsed != 2 || *v.UsedBytes < 100<<10 || v.PVCRef == nil || v.PVCRef.Name != "claim" {
		t.Errorf("volume: %d bytes in %d files, %+v", *v.UsedBytes, *v.InodesUsed, v.PVCRef)
	}
	if want := *c.Rootfs.UsedBytes + *c.Logs.UsedBytes + *v.UsedBytes + 4096; *p.EphemeralStorage.UsedBytes != want {
		t.Errorf("ephemeral storage: %d, want %d", *p.EphemeralStorage.UsedBytes, want)
	}
	// The result of a walk is cached.
	w.write(volume, "more", "x")
	if again := summary().VolumeStats[0]; *again.InodesUsed != 2 {
		t.Errorf("the volume was walked again at once: %d files", *again.InodesUsed)
	}
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	if again := summary().VolumeStats[0]; *again.InodesUsed != 3 {
		t.Errorf("the volume was not walked again: %d files, want 3", *again.InodesUsed)
	}
}

// Twenty concurrent calls share one reading.
func TestReadingIsShared(t *testing.T) {
	w := newFakeNode(t, 2)
	w.addPod("a")
	readings := 0
	synctest.Test(t, func(t *testing.T) {
		proceed := make(chan struct{})
		s := w.stats(func(_ *Config, d *Deps) {
			pods := d.Pods
			d.Pods = func() []pod.Observed { readings++; <-proceed; return pods() }
		})
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if _, err := s.UsageSummary(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		// A canceled caller leaves; the others get their result.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.UsageSummary(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("the canceled caller got %v", err)
		}
		close(proceed)
		all.Wait()
	})
	if readings != 1 {
		t.Errorf("%d readings for 20 concurrent calls", readings)
	}
}
