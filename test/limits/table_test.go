package limits

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

// The kernel's files that bound a group, in the order of the tables' columns.
var boundFiles = map[int][]string{
	1: {"cpu/cpu.shares", "cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us", "memory/memory.limit_in_bytes", "pids/pids.max"},
	2: {"cpu.weight", "cpu.max", "memory.min", "memory.low", "memory.high", "memory.max", "memory.swap.max", "memory.oom.group", "pids.max"},
}

// group is a row of a table.
type group struct {
	name string // as the table calls it
	path string
}

// podsGroups are those above pods.
var podsGroups = []group{{"kubepods", "/kubepods"}, {"(burstable)", "/kubepods/burstable"}, {"(besteffort)", "/kubepods/besteffort"}}

// groupsOf are the pods' own groups, and their containers'.
func groupsOf(pods []v1.Pod) (groups []group) {
	slices.SortFunc(pods, func(a, b v1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for _, p := range pods {
		class := map[v1.PodQOSClass]string{v1.PodQOSBurstable: "/burstable", v1.PodQOSBestEffort: "/besteffort"}[p.Status.QOSClass]
		own := group{p.Name, "/kubepods" + class + "/pod" + p.Annotations["kubernetes.io/config.hash"]}
		groups = append(groups, own)
		for _, s := range append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...) {
			groups = append(groups, group{p.Name + "/" + s.Name, own.path + "/" + strings.TrimPrefix(s.ContainerID, "containerd://")})
		}
	}
	return groups
}

// compare reads the bounds of the groups and holds them against testdata/NAME.vN. Words
// stand there for amounts that are the machine's.
func compare(t *testing.T, name string, groups []group) {
	t.Helper()
	var got bytes.Buffer
	table := tabwriter.NewWriter(&got, 0, 0, 2, ' ', 0)
	files := boundFiles[hierarchy.Version]
	fmt.Fprint(table, "group")
	for _, file := range files {
		fmt.Fprint(table, "\t", filepath.Base(file))
	}
	fmt.Fprintln(table)
	for _, g := range groups {
		fmt.Fprint(table, g.name)
		for _, file := range files {
			fmt.Fprint(table, "\t", read(t, g, file))
		}
		fmt.Fprintln(table)
	}
	table.Flush()
	file := fmt.Sprintf("testdata/%s.v%d", name, hierarchy.Version)
	if *record {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
		t.Errorf("%s is not what was seen:\n%s(-want +got)\n%s", file, got.String(), diff)
	}
}

// read is one cell: what a file of the group says.
func read(t *testing.T, g group, file string) string {
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
	if want, word := machineAmount(t, base); g.name == "kubepods" && value == want {
		return word
	}
	return value
}

// machineAmount is what all pods together are given of the machine, and the word for it.
func machineAmount(t *testing.T, file string) (amount, word string) {
	t.Helper()
	switch file {
	case "cpu.shares":
		return strconv.Itoa((runtime.NumCPU()*1000 - 150) * 1024 / 1000), "cpus-150m"
	case "cpu.weight":
		return strconv.Itoa(1 + ((runtime.NumCPU()*1000-150)*1024/1000-2)*9999/262142), "cpus-150m"
	case "memory.limit_in_bytes", "memory.max":
		var info unix.Sysinfo_t
		if err := unix.Sysinfo(&info); err != nil {
			t.Fatal(err)
		}
		return strconv.FormatUint(info.Totalram*uint64(info.Unit)-80<<20, 10), "memory-80Mi"
	case "pids.max":
		return strconv.Itoa(min(number(t, "/proc/sys/kernel/pid_max"), number(t, "/proc/sys/kernel/threads-max")) - 800), "pids-800"
	}
	return "", ""
}

func number(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
