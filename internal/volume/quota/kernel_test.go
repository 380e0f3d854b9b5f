package quota

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"

	"swiftlet/internal/volume/privatens"
	"swiftlet/internal/volume/quota/quotatest"
)

func TestMain(m *testing.M) { privatens.Main(m) }

// machine is a disk with its project lists and the agent's Projects.
type machine struct {
	*Projects
	t         *testing.T
	pods, etc string
	log       strings.Builder
}

// newMachine uses the disk until the test ends.
func newMachine(t *testing.T, disk string) *machine {
	t.Helper()
	m := &machine{t: t, pods: filepath.Join(disk, "pods"), etc: t.TempDir()}
	must(t, os.Mkdir(m.pods, 0o755))
	t.Cleanup(func() {
		must(t, os.RemoveAll(m.pods))
		for id := uint32(firstID); id < firstID+10; id++ {
			m.waitFree(id)
		}
	})
	m.restart()
	return m
}

// waitFree: XFS accounts files for a moment after their removal.
func (m *machine) waitFree(id uint32) {
	m.t.Helper()
	f, err := openDir(filepath.Dir(m.pods))
	must(m.t, err)
	defer f.Close()
	on, err := accounting(f)
	must(m.t, err)
	m.wait(func() string {
		used, err := on.usage(f, id)
		must(m.t, err)
		if used == (Usage{}) {
			return ""
		}
		return fmt.Sprintf("project %d is in use: %+v", id, used)
	})
}

// wait polls until wrong reports nothing.
func (m *machine) wait(wrong func() string) {
	m.t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		problem := wrong()
		if problem == "" {
			return
		}
		if time.Now().After(end) {
			m.t.Fatal(problem)
		}
	}
}

// restart replaces the agent with a new one without state.
func (m *machine) restart() {
	m.t.Helper()
	var err error
	m.Projects, err = New(Config{PodsDir: m.pods, ListsDir: m.etc}, clock.RealClock{}, slog.New(slog.NewTextHandler(&m.log, nil)))
	must(m.t, err)
}

// volume creates the directory of a volume and tracks it.
func (m *machine) volume(name string) string {
	m.t.Helper()
	dir := filepath.Join(m.pods, name)
	must(m.t, os.MkdirAll(dir, 0o755))
	m.Track(dir, m.marker(dir))
	if m.log.Len() > 0 {
		m.t.Fatalf("log: %s", m.log.String())
	}
	return dir
}

func (m *machine) marker(dir string) string {
	return filepath.Join(m.etc, "counted-"+strings.ReplaceAll(dir, "/", "-"))
}

func (m *machine) id(dir string) uint32 {
	m.t.Helper()
	f, err := openDir(dir)
	must(m.t, err)
	defer f.Close()
	id, err := idOf(f)
	must(m.t, err)
	return id
}

func (m *machine) lists() string {
	m.t.Helper()
	projects, err := os.ReadFile(filepath.Join(m.etc, projectsFile))
	must(m.t, err)
	names, err := os.ReadFile(filepath.Join(m.etc, namesFile))
	must(m.t, err)
	return strings.ReplaceAll(string(projects), m.pods, "PODS") + string(names)
}

// du is the usage of the files below dir as du reports it.
func (m *machine) du(dir string) Usage {
	m.t.Helper()
	return Usage{Bytes: m.number("du", "-s", "--block-size=1", dir), Inodes: m.number("du", "-s", "--inodes", dir)}
}

func (m *machine) number(command ...string) uint64 {
	m.t.Helper()
	out, err := exec.Command(command[0], command[1:]...).Output()
	must(m.t, err)
	n, err := strconv.ParseUint(strings.Fields(string(out))[0], 10, 64)
	must(m.t, err)
	return n
}

// agrees fails unless the kernel and du report the same usage.
func (m *machine) agrees(dir string) (used Usage) {
	m.t.Helper()
	f, err := openDir(dir)
	must(m.t, err)
	defer f.Close()
	must(m.t, unix.Syncfs(int(f.Fd()))) // blocks are given out late
	m.wait(func() string {
		var ok bool
		used, ok = m.Used(dir)
		if want := m.du(dir); !ok || used != want {
			return fmt.Sprintf("%s: counted %+v (%v), du says %+v", dir, used, ok, want)
		}
		return ""
	})
	return used
}

func fill(t *testing.T, dir string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Join(dir, "a/b/c"), 0o755))
	for i, size := range []int{0, 1, 5000, 300_000, 2 << 20} {
		must(t, os.WriteFile(filepath.Join(dir, "a/b", strconv.Itoa(i)), make([]byte, size), 0o600))
	}
	must(t, os.Link(filepath.Join(dir, "a/b/3"), filepath.Join(dir, "a/again")))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestKernel runs the tests below on each file system with project quotas.
func TestKernel(t *testing.T) {
	for _, kind := range quotatest.Kinds() {
		t.Run(kind, func(t *testing.T) {
			disk := quotatest.Mount(t, kind)
			for name, test := range map[string]func(*machine){
				"tracks usage":                       tracksUsage,
				"sets no limits":                     setsNoLimits,
				"releases IDs":                       releasesIDs,
				"assigns no ID in use":               assignsNoIDInUse,
				"includes existing files":            includesExistingFiles,
				"includes deep trees":                includesDeepTrees,
				"takes over reference kubelet lists": takesOver,
				"quotactl by device":                 byDevice,
				"restart after track":                killed(func(*machine, string) {}),
				"killed before marker":               killed(func(m *machine, dir string) { must(m.t, os.Remove(m.marker(dir))) }),
				"killed before project is set":       killed((*machine).unfinished),
				"killed between lists": killed(func(m *machine, dir string) {
					m.unfinished(dir)
					must(m.t, os.Truncate(filepath.Join(m.etc, projectsFile), 0))
				}),
				"restart with lost lists": killed(func(m *machine, _ string) { must(m.t, os.RemoveAll(m.etc)); must(m.t, os.Mkdir(m.etc, 0o755)) }),
			} {
				t.Run(name, func(t *testing.T) { test(newMachine(t, disk)) })
			}
		})
	}
}

func tracksUsage(m *machine) {
	one, two := m.volume("one"), m.volume("two")
	m.agrees(one) // nothing but the directory
	fill(m.t, one)
	must(m.t, os.WriteFile(filepath.Join(two, "file"), make([]byte, 100_000), 0o600))
	if used := m.agrees(one); used.Bytes < 2<<20 || used.Inodes != 9 {
		m.t.Errorf("counted %+v", used)
	}
	m.agrees(two)
	must(m.t, os.RemoveAll(filepath.Join(one, "a/b")))
	m.agrees(one)
	if got, want := m.lists(), "1048577:PODS/one\n1048578:PODS/two\nvolume1048577:1048577\nvolume1048578:1048578\n"; got != want {
		m.t.Errorf("lists:\n%s\nwant:\n%s", got, want)
	}
	if got := m.id(filepath.Join(one, "a")); got != 1048577 {
		m.t.Errorf("a new directory is in project %d", got)
	}
}

// setsNoLimits: quotas are for monitoring, limits are enforced by eviction.
func setsNoLimits(m *machine) {
	dir := m.volume("one")
	m.limits(dir, quotaBlock{})
}

func (m *machine) limits(dir string, want quotaBlock) {
	m.t.Helper()
	f, err := openDir(m.pods)
	must(m.t, err)
	defer f.Close()
	block, err := m.known[dir].on.block(f, firstID)
	must(m.t, err)
	if block.bytesHard != want.bytesHard || block.bytesSoft != want.bytesSoft || block.inodesHard|block.inodesSoft != 0 {
		m.t.Errorf("limits %+v, want %+v", block, want)
	}
}

func releasesIDs(m *machine) {
	other := "1048577:/srv/other\n1048580:" + m.pods + "-else/gone\n# a word\n"
	must(m.t, os.WriteFile(filepath.Join(m.etc, projectsFile), []byte(other), 0o640))
	must(m.t, os.WriteFile(filepath.Join(m.etc, namesFile), []byte("other:1048577\n"), 0o600))
	one, two := m.volume("uid/one"), m.volume("uid/two")
	fill(m.t, one)
	if a, b := m.id(one), m.id(two); a != 1048578 || b != 1048579 {
		m.t.Errorf("IDs %d and %d, though the first is in use", a, b)
	}
	must(m.t, os.RemoveAll(one))
	m.ReleaseStale()
	if _, ok := m.Used(one); ok {
		m.t.Error("a removed volume is tracked")
	}
	must(m.t, os.RemoveAll(two))
	m.restart() // killed before it could tidy up
	m.ReleaseStale()
	if got, want := m.lists(), strings.ReplaceAll(other, m.pods, "PODS")+"other:1048577\n"; got != want {
		m.t.Errorf("lists:\n%s\nwant:\n%s", got, want)
	}
	info, err := os.Stat(filepath.Join(m.etc, projectsFile))
	must(m.t, err)
	if info.Mode() != 0o640 {
		m.t.Errorf("mode %v", info.Mode())
	}
	m.waitFree(1048578)
	if got := m.id(m.volume("uid/three")); got != 1048578 {
		m.t.Errorf("the next volume has id %d", got)
	}
}

// assignsNoIDInUse: another program uses IDs that are not listed.
func assignsNoIDInUse(m *machine) {
	stray := filepath.Join(m.pods, "stray")
	must(m.t, os.Mkdir(stray, 0o755))
	f, err := openDir(stray)
	must(m.t, err)
	defer f.Close()
	must(m.t, setFileProject(f, firstID, true))
	if got := m.id(m.volume("one")); got != firstID+1 {
		m.t.Errorf("id %d", got)
	}
}

// killed: a new agent continues after the previous one was killed.
func killed(undo func(m *machine, dir string)) func(*machine) {
	return func(m *machine) {
		dir := m.volume("one")
		undo(m, dir)
		m.restart()
		m.ReleaseStale()
		m.volume("one")
		fill(m.t, dir)
		m.agrees(dir)
		if got, want := m.lists(), "1048577:PODS/one\nvolume1048577:1048577\n"; got != want {
			m.t.Errorf("lists:\n%s\nwant:\n%s", got, want)
		}
	}
}

// unfinished is a volume whose ID is listed but not set.
func (m *machine) unfinished(dir string) {
	m.put(dir, 0)
	must(m.t, os.Remove(m.marker(dir)))
}

// put changes the project of a directory and clears its inherit flag.
func (m *machine) put(dir string, id uint32) {
	m.t.Helper()
	f, err := openDir(dir)
	must(m.t, err)
	defer f.Close()
	must(m.t, attribute(int(f.Fd()), setAttribute, &attributes{project: id}))
}

// includesExistingFiles: quotas are enabled while the pod runs.
func includesExistingFiles(m *machine) {
	dir, outside := filepath.Join(m.pods, "one"), filepath.Join(m.pods, "outside")
	must(m.t, os.MkdirAll(dir, 0o755))
	must(m.t, os.Mkdir(outside, 0o755))
	fill(m.t, dir)
	fill(m.t, outside)
	must(m.t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	must(m.t, os.Symlink(outside, filepath.Join(dir, "link")))
	must(m.t, os.Mkdir(filepath.Join(dir, "mnt"), 0o755))
	must(m.t, unix.Mount(outside, filepath.Join(dir, "mnt"), "", unix.MS_BIND, ""))
	defer unix.Unmount(filepath.Join(dir, "mnt"), 0) // where the test fails
	m.volume("one")
	for path, want := range map[string]uint32{"one": firstID, "one/a/b": firstID, "outside": 0, "outside/a": 0} {
		if got := m.id(filepath.Join(m.pods, path)); got != want {
			m.t.Errorf("%s is in project %d, want %d", path, got, want)
		}
	}
	must(m.t, unix.Unmount(filepath.Join(dir, "mnt"), 0))
	must(m.t, os.Remove(filepath.Join(dir, "mnt")))
	must(m.t, os.Remove(filepath.Join(dir, "pipe")))
	must(m.t, os.Remove(filepath.Join(dir, "link")))
	m.agrees(dir)
}

// includesDeepTrees: a pod has nested more directories than the process may open files.
func includesDeepTrees(m *machine) {
	const depth, files = 300, 128
	dir := filepath.Join(m.pods, "one")
	must(m.t, os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", depth)), 0o755))
	must(m.t, os.WriteFile(filepath.Join(dir, strings.Repeat("d/", depth), "file"), make([]byte, 100_000), 0o600))
	var old unix.Rlimit
	must(m.t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	must(m.t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: files, Max: old.Max}))
	defer func() { must(m.t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old)) }()
	m.volume("one")
	if used := m.agrees(dir); used.Inodes != depth+2 {
		m.t.Errorf("counted %+v, want %d inodes", used, depth+2)
	}
}

// takesOver: the reference kubelet's lists are used and its limits removed.
func takesOver(m *machine) {
	dir := filepath.Join(m.pods, "uid/volumes/kubernetes.io~empty-dir/one")
	must(m.t, os.MkdirAll(dir, 0o755))
	must(m.t, os.WriteFile(filepath.Join(m.etc, projectsFile), []byte("1048577:"+dir+"\n"), 0o644))
	must(m.t, os.WriteFile(filepath.Join(m.etc, namesFile), []byte("volume1048577:1048577\n"), 0o644))
	f, err := openDir(dir)
	must(m.t, err)
	must(m.t, setFileProject(f, firstID, true))
	on, err := accounting(f)
	must(m.t, err)
	most := quotaBlock{bytesHard: 1 << 40, bytesSoft: 1 << 40, valid: limitsValid}
	must(m.t, on.quotactl(f, cmdSetQuota, firstID, unsafe.Pointer(&most)))
	must(m.t, f.Close())
	fill(m.t, dir)
	m.volume("uid/volumes/kubernetes.io~empty-dir/one")
	m.limits(dir, most)
	m.agrees(dir)
	must(m.t, os.RemoveAll(filepath.Join(m.pods, "uid")))
	known := m.known[dir]
	m.ReleaseStale()
	m.known[dir] = known
	m.limits(dir, quotaBlock{})
	if got := m.lists(); got != "" {
		m.t.Errorf("lists: %s", got)
	}
}

// byDevice: kernels before 5.14 need the device for quotactl.
func byDevice(m *machine) {
	dir := m.volume("one")
	fill(m.t, dir)
	var st unix.Stat_t
	must(m.t, unix.Stat(dir, &st))
	before := m.agrees(dir)
	m.known[dir] = project{m.known[dir].id, fileSystem{deviceOf(st.Dev)}}
	if got, ok := m.Used(dir); !ok || got != before {
		m.t.Errorf("by its device %q: %+v, %v; want %+v", deviceOf(st.Dev), got, ok, before)
	}
}
