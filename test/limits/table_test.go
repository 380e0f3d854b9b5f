package limits

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"

	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

// boundFiles are the cgroup files of the tables' columns, by cgroup version.
var boundFiles = map[int][]string{
	1: {"cpu/cpu.shares", "cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us", "memory/memory.limit_in_bytes", "pids/pids.max"},
	2: {"cpu.weight", "cpu.max", "memory.min", "memory.low", "memory.high", "memory.max", "memory.swap.max", "memory.oom.group", "pids.max"},
}

// cgroupRow is the cgroup of a row of a table.
type cgroupRow struct {
	name string // its name in the table
	path string
}

// parentCgroups are the cgroups above those of pods.
var parentCgroups = []cgroupRow{{"kubepods", "/kubepods"}, {"(burstable)", "/kubepods/burstable"}, {"(besteffort)", "/kubepods/besteffort"}}

// podCgroups are the cgroups of the pods and of their containers.
func podCgroups(pods []v1.Pod) (groups []cgroupRow) {
	slices.SortFunc(pods, func(a, b v1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for _, p := range pods {
		class := map[v1.PodQOSClass]string{v1.PodQOSBurstable: "/burstable", v1.PodQOSBestEffort: "/besteffort"}[p.Status.QOSClass]
		uid := cmp.Or(p.Annotations["kubernetes.io/config.hash"], string(p.UID)) // static pods have the annotation
		own := cgroupRow{p.Name, "/kubepods" + class + "/pod" + uid}
		groups = append(groups, own)
		for _, s := range append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...) {
			groups = append(groups, cgroupRow{p.Name + "/" + s.Name, own.path + "/" + strings.TrimPrefix(s.ContainerID, "containerd://")})
		}
	}
	return groups
}

// table has the cgroup files' values, one row per cgroup.
type table struct {
	text   bytes.Buffer
	writer *tabwriter.Writer
}

func newTable() *table {
	t := &table{}
	t.writer = tabwriter.NewWriter(&t.text, 0, 0, 2, ' ', 0)
	fmt.Fprint(t.writer, "group")
	for _, file := range boundFiles[hierarchy.Version] {
		fmt.Fprint(t.writer, "\t", filepath.Base(file))
	}
	fmt.Fprintln(t.writer)
	return t
}

// add adds rows with the current values of the cgroups.
func (tb *table) add(t *testing.T, prefix string, groups []cgroupRow) {
	t.Helper()
	for _, g := range groups {
		fmt.Fprint(tb.writer, prefix, g.name)
		for _, file := range boundFiles[hierarchy.Version] {
			fmt.Fprint(tb.writer, "\t", read(t, g, file))
		}
		fmt.Fprintln(tb.writer)
	}
}

// compare compares the table with testdata/NAME.vN. In both, symbols replace values that depend on
// the machine.
func (tb *table) compare(t *testing.T, name string) {
	t.Helper()
	tb.writer.Flush()
	got := tb.text.String()
	file := fmt.Sprintf("testdata/%s.v%d", name, hierarchy.Version)
	if *record {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("table differs from %s:\n%s(-want +got)\n%s", file, got, diff)
	}
}

// compare compares the current values of the cgroups with testdata/NAME.vN.
func compare(t *testing.T, name string, groups []cgroupRow) {
	t.Helper()
	seen := newTable()
	seen.add(t, "", groups)
	seen.compare(t, name)
}

// read returns one cell: the value of a cgroup file.
func read(t *testing.T, g cgroupRow, file string) string {
	t.Helper()
	controller, base, found := strings.Cut(file, "/")
	if !found {
		controller, base = "", file
	}
	text, err := os.ReadFile(filepath.Join(hierarchy.Dir(controller, g.path), base))
	if err != nil {
		t.Errorf("%s: %v", g.name, err)
		return "?"
	}
	value := strings.ReplaceAll(strings.TrimSpace(string(text)), " ", "/")
	if word := symbolFor(t, g, base, value); word != "" {
		return word
	}
	return value
}

// symbolFor returns the symbol of a value that depends on the machine's resources, or "".
func symbolFor(t *testing.T, g cgroupRow, file, value string) string {
	t.Helper()
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		t.Fatal(err)
	}
	memory := int64(info.Totalram) * int64(info.Unit)
	words := map[string]string{}
	say := func(amount int64, word string) { words[strconv.FormatInt(amount, 10)] = word }
	switch {
	case file == "memory.high":
		const request = 16 << 20
		say(int64(request+float64(memory-request)*0.8)/4096*4096, "80%-of-memory")
	case file == "memory.swap.max":
		swap := float64(info.Totalswap) * float64(info.Unit)
		say(int64(16<<20/float64(memory)*swap)/4096*4096, "swap-for-16Mi")
		say(int64(32<<20/float64(memory)*swap)/4096*4096, "swap-for-32Mi")
	case g.name != "kubepods":
	case file == "cpu.shares":
		say(shares(0), "cpus")
		say(shares(150), "cpus-150m")
	case file == "cpu.weight":
		say(1+(shares(0)-2)*9999/262142, "cpus")
		say(1+(shares(150)-2)*9999/262142, "cpus-150m")
	case file == "memory.limit_in_bytes" || file == "memory.max":
		say(memory/4096*4096, "memory")
		say((memory-80<<20)/4096*4096, "memory-80Mi")
	case file == "pids.max":
		pids := min(number(t, "/proc/sys/kernel/pid_max"), number(t, "/proc/sys/kernel/threads-max"))
		say(pids, "pids")
		say(pids-800, "pids-800")
	}
	return words[value]
}

// shares is cpu.shares of all CPUs minus reserved millicores.
func shares(reserved int64) int64 { return (int64(runtime.NumCPU())*1000 - reserved) * 1024 / 1000 }

func number(t *testing.T, file string) int64 {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
