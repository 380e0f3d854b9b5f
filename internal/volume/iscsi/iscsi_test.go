package iscsi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"swiftlet/internal/volume/plugin"
	"swiftlet/internal/volume/scsi"
)

const target = "iqn.2026-01.test:store"

// san is a fake of iscsiadm and of the kernel's /sys, in a directory.
type san struct {
	*Plugin
	t      *testing.T
	root   string
	calls  []string
	down   map[string]bool // portals that do not answer
	fails  map[string]int  // exit codes, by the end of the command line
	luns   map[string]string
	secret *v1.Secret
	// elsewhere means that iscsiadm has its records in an unusual directory.
	elsewhere bool
	log       bytes.Buffer
}

func newSAN(t *testing.T, clk clock.Clock) *san {
	s := &san{t: t, root: t.TempDir(), down: map[string]bool{}, fails: map[string]int{}, luns: map[string]string{}}
	if clk == nil {
		clk = clock.RealClock{}
	}
	s.Plugin = New(Deps{
		RootDir: s.root, Mounter: s, Clock: clk, Databases: []string{filepath.Join(s.root, "none"), filepath.Join(s.root, "db")}, Log: slog.New(slog.NewTextHandler(&s.log, nil)),
		Host: scsi.Host{Sys: filepath.Join(s.root, "sys"), Dev: filepath.Join(s.root, "dev"), Runner: s},
		Secret: func(_ context.Context, namespace, name string) (*v1.Secret, error) {
			if s.secret == nil || namespace != s.secret.Namespace || name != s.secret.Name {
				return nil, errors.New("no such secret")
			}
			return s.secret, nil
		},
	})
	return s
}

func (s *san) Bind(int, string) error                             { return errors.New("not here") }
func (s *san) Mounted(string) (bool, error)                       { return false, nil }
func (s *san) Unmount(string) error                               { return nil }
func (s *san) SameFilesystemMount(string, string) (string, error) { return "", nil }

// file creates a file of /sys.
func (s *san) file(content string, path ...string) {
	s.t.Helper()
	name := filepath.Join(append([]string{s.root}, path...)...)
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(content), 0o644)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *san) Run(_ context.Context, program string, args ...string) (string, error) {
	line := strings.Join(append([]string{program}, args...), " ")
	s.calls = append(s.calls, line)
	for end, code := range s.fails {
		if strings.HasSuffix(line, end) {
			return "refused", exec.Command("sh", "-c", fmt.Sprint("exit ", code)).Run()
		}
	}
	portal := ""
	if i := slices.Index(args, "-p"); i >= 0 {
		portal = args[i+1]
	}
	switch {
	case strings.HasSuffix(line, "auth.authmethod -v CHAP") && !s.elsewhere:
		s.record(args, portal)
	case strings.HasSuffix(line, "-o show"):
		return "# BEGIN RECORD 2.1\niface.iscsi_ifacename = default\niface.transport_name = tcp\niface.ipaddress = <empty>\niface.mtu = 0\n", nil
	case slices.Contains(args, "--login"):
		s.login(portal)
	case slices.Contains(args, "--discover") && s.down[portal]:
		return "connect: no route to host", exec.Command("sh", "-c", "exit 4").Run()
	}
	return "", nil
}

// login adds a session and the target's disks.
func (s *san) login(portal string) {
	host, port, err := net.SplitHostPort(portal)
	if err != nil {
		s.t.Fatal(err)
	}
	number := host[len(host)-1:]
	session := filepath.Join("sys/class/iscsi_host/host"+number, "device/session"+number)
	s.file(target+"\n", session, "iscsi_session/session"+number+"/targetname")
	connection := filepath.Join(session, "connection"+number+":0/iscsi_connection/connection"+number+":0")
	for _, prefix := range []string{"", "persistent_"} {
		s.file(host+"\n", connection, prefix+"address")
		s.file(port+"\n", connection, prefix+"port")
	}
	s.file("", "sys/class/scsi_host/host"+number, "scan")
	for lun, disk := range s.luns {
		name := disk + number
		s.file("", session, fmt.Sprintf("target%s:0:0/%s:0:0:%s/block/%s/size", number, number, lun, name))
		s.file("", "dev", name)
		s.file("", "sys/block", name, "device/delete")
	}
}

func (s *san) want(want ...string) {
	s.t.Helper()
	if !slices.Equal(s.calls, want) {
		s.t.Errorf("called\n%s\nwant\n%s", strings.Join(s.calls, "\n"), strings.Join(want, "\n"))
	}
	s.calls = nil
}

func request(change func(*v1.ISCSIPersistentVolumeSource)) plugin.Request {
	source := &v1.ISCSIPersistentVolumeSource{TargetPortal: "10.0.0.1", IQN: target, Lun: 7, ISCSIInterface: "default"}
	if change != nil {
		change(source)
	}
	return plugin.Request{
		Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}},
		Spec: plugin.Spec{Volume: &v1.Volume{}, PV: &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"},
			Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: v1.PersistentVolumeSource{ISCSI: source}}}},
	}
}

// TestLogin: iscsiadm gets the arguments of the reference kubelet.
func TestLogin(t *testing.T) {
	s := newSAN(t, nil)
	s.luns = map[string]string{"7": "sdx", "8": "sdy"}
	r := request(nil)
	device, err := s.Connect(t.Context(), r)
	if err != nil || device != filepath.Join(s.root, "dev/sdx1") {
		t.Fatalf("%s, %v", device, err)
	}
	s.want(
		"iscsiadm -m iface -I default -o show",
		"iscsiadm -m discoverydb -t sendtargets -p 10.0.0.1:3260 -I default -o new",
		"iscsiadm -m discoverydb -t sendtargets -p 10.0.0.1:3260 -I default --discover",
		"iscsiadm -m node -p 10.0.0.1:3260 -T "+target+" -I default -o update -n node.session.scan -v manual",
		"iscsiadm -m node -p 10.0.0.1:3260 -T "+target+" -I default --login",
		"iscsiadm -m node -p 10.0.0.1:3260 -T "+target+" -o update -n node.startup -v manual",
	)
	if scanned, err := os.ReadFile(filepath.Join(s.root, "sys/class/scsi_host/host1/scan")); string(scanned) != "0 0 7" {
		t.Errorf("scanned for %q, %v; want that one disk", scanned, err)
	}
	if name, err := s.AttachName(t.Context(), r.Spec); name != "kubernetes.io/iscsi/10.0.0.1:"+target+":7" || err != nil {
		t.Errorf("attached as %s, %v", name, err)
	}

	// Another disk of the target needs no login, and keeps the session.
	other := request(func(in *v1.ISCSIPersistentVolumeSource) { in.Lun = 8 })
	if device, err := s.Connect(t.Context(), other); err != nil || device != filepath.Join(s.root, "dev/sdy1") {
		t.Fatalf("%s, %v", device, err)
	}
	s.want("iscsiadm -m iface -I default -o show")
	for range 2 {
		if err := s.Unstage(t.Context(), "iface-default/10.0.0.1:3260-"+target+"-lun-7"); err != nil {
			t.Fatal(err)
		}
	}
	s.want()
	s.deleted("sdx1", "1")
	s.deleted("sdy1", "")
	s.fails = map[string]int{"--logout -I default": codeNoObjects} // logged out meanwhile
	if err := s.Unstage(t.Context(), "iface-default/10.0.0.1:3260-"+target+"-lun-8"); err != nil {
		t.Fatal(err)
	}
	s.want(
		"iscsiadm -m node -p 10.0.0.1:3260 -T "+target+" --logout -I default",
		"iscsiadm -m node -p 10.0.0.1:3260 -T "+target+" -o delete -I default",
	)
	if ids, err := s.Staged(); len(ids) != 0 || err != nil {
		t.Errorf("left %v, %v", ids, err)
	}
}

func (s *san) deleted(disk, want string) {
	s.t.Helper()
	if got, err := os.ReadFile(filepath.Join(s.root, "sys/block", disk, "device/delete")); string(got) != want {
		s.t.Errorf("delete of %s holds %q, %v; want %q", disk, got, err, want)
	}
}

// TestCHAPAndInitiatorName: the credentials are set for discovery and session, and the volume's own
// interface has its initiator name.
func TestCHAPAndInitiatorName(t *testing.T) {
	s := newSAN(t, nil)
	s.luns = map[string]string{"7": "sdx"}
	s.secret = &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "chap"}, Data: map[string][]byte{
		"discovery.sendtargets.auth.password": []byte("d"), "node.session.auth.username": []byte("u"), "node.session.auth.password_in": []byte("p"),
	}}
	r := request(func(in *v1.ISCSIPersistentVolumeSource) {
		in.DiscoveryCHAPAuth, in.SessionCHAPAuth, in.SecretRef = true, true, &v1.SecretReference{Name: "chap"}
		in.InitiatorName = ptr.To("iqn.2026-01.test:node")
	})
	if _, err := s.Connect(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	const own = "10.0.0.1:3260:pv"
	s.want(
		"iscsiadm -m iface -I default -o show",
		"iscsiadm -m iface -I "+own+" -o new",
		"iscsiadm -m iface -I "+own+" -o update -n iface.initiatorname -v iqn.2026-01.test:node",
		"iscsiadm -m iface -I "+own+" -o update -n iface.mtu -v 0",
		"iscsiadm -m iface -I "+own+" -o update -n iface.transport_name -v tcp",
		"iscsiadm -m discoverydb -t sendtargets -p 10.0.0.1:3260 -I "+own+" -o new",
		"iscsiadm -m discoverydb -t sendtargets -p 10.0.0.1:3260 -I "+own+" -o update -n discovery.sendtargets.auth.authmethod -v CHAP",
		"iscsiadm -m discoverydb -t sendtargets -p 10.0.0.1:3260 -I "+own+" --discover",
		"iscsiadm -m node -p 10.0.0.1:3260 -T "+target+" -I "+own+" -o update -n node.session.scan -v manual",
		"iscsiadm -m node -p 10.0.0.1:3260 -T "+target+" -I "+own+" -o update -n node.session.auth.authmethod -v CHAP",
		"iscsiadm -m node -p 10.0.0.1:3260 -T "+target+" -I "+own+" --login",
		"iscsiadm -m node -p 10.0.0.1:3260 -T "+target+" -o update -n node.startup -v manual",
	)
	for file, want := range map[string]string{
		"send_targets/10.0.0.1,3260/st_config":         "# BEGIN RECORD 2.1.8\nother = 1\ndiscovery.sendtargets.auth.password = d\n# END RECORD\n",
		"send_targets/10.0.0.1,32600/st_config":        "# BEGIN RECORD 2.1.8\nother = 1\ndiscovery.sendtargets.auth.username = old\n# END RECORD\n",
		"nodes/" + target + "/10.0.0.1,3260":           "# BEGIN RECORD 2.1.8\nother = 1\nnode.session.auth.username = u\nnode.session.auth.password_in = p\n# END RECORD\n",
		"nodes/" + target + "/10.0.0.1,3260,1/" + own:  "# BEGIN RECORD 2.1.8\nother = 1\nnode.session.auth.username = u\nnode.session.auth.password_in = p\n# END RECORD\n",
		"nodes/" + target + "/10.0.0.1,3260,1/default": "# BEGIN RECORD 2.1.8\nother = 1\nnode.session.auth.username = old\n# END RECORD\n",
		"nodes/" + target + "/10.0.0.1,32600,1/" + own: "# BEGIN RECORD 2.1.8\nother = 1\nnode.session.auth.username = old\n# END RECORD\n",
	} {
		path := filepath.Join(s.root, "db", file)
		info, err := os.Stat(path)
		text, readErr := os.ReadFile(path)
		if err != nil || readErr != nil || string(text) != want || !strings.Contains(want, "= old\n") && info.Mode() != 0o600 {
			t.Errorf("%s: %v %v %q, want %q", file, err, readErr, text, want)
		}
	}
	id, err := s.DeviceID(t.Context(), r.Spec)
	if err != nil || id != "iface-"+own+"/10.0.0.1:3260-"+target+"-lun-7" {
		t.Fatalf("%s, %v", id, err)
	}
	if err := s.Unstage(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	s.want(
		"iscsiadm -m node -p 10.0.0.1:3260 -T "+target+" --logout -I "+own,
		"iscsiadm -m node -p 10.0.0.1:3260 -T "+target+" -o delete -I "+own,
		"iscsiadm -m iface -I "+own+" -o delete",
	)
}

// record creates iscsiadm's record, and those of other portals and interfaces.
func (s *san) record(args []string, portal string) {
	const text = "# BEGIN RECORD 2.1.8\nother = 1\n%s.auth.username = old\n# END RECORD\n"
	portal = strings.Replace(portal, ":", ",", 1)
	if slices.Contains(args, "discoverydb") {
		s.file(fmt.Sprintf(text, "discovery.sendtargets"), "db/send_targets", portal, "st_config")
		s.file(fmt.Sprintf(text, "discovery.sendtargets"), "db/send_targets", portal+"0", "st_config")
		return
	}
	s.file(fmt.Sprintf(text, "node.session"), "db/nodes", target, portal)
	for _, at := range []string{portal + ",1", portal + "0,1"} {
		for _, iface := range []string{"default", args[slices.Index(args, "-I")+1]} {
			s.file(fmt.Sprintf(text, "node.session"), "db/nodes", target, at, iface)
		}
	}
}

// TestCHAPWithoutRecord: the credentials are not passed as arguments, not even to an iscsiadm with its records elsewhere.
func TestCHAPWithoutRecord(t *testing.T) {
	s := newSAN(t, nil)
	s.luns, s.elsewhere = map[string]string{"7": "sdx"}, true
	s.secret = &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "chap"}, Data: map[string][]byte{"node.session.auth.password": []byte("canary")}}
	r := request(func(in *v1.ISCSIPersistentVolumeSource) {
		in.SessionCHAPAuth, in.SecretRef = true, &v1.SecretReference{Name: "chap"}
	})
	if _, err := s.Connect(t.Context(), r); err == nil || !strings.Contains(err.Error(), "record for portal 10.0.0.1,3260 is not in") {
		t.Errorf("got error %v", err)
	}
	for _, call := range s.calls {
		if strings.Contains(call, "auth.password") || strings.Contains(call, "canary") {
			t.Errorf("called %s", call)
		}
	}
	s.secret.Data["node.session.auth.password"] = []byte("p\nnode.session.auth.authmethod = None")
	if _, err := s.Connect(t.Context(), request(func(in *v1.ISCSIPersistentVolumeSource) {
		*in = *r.Spec.PV.Spec.ISCSI
		in.TargetPortal = "10.0.0.2"
	})); err == nil || !strings.Contains(err.Error(), "control character") || strings.Contains(err.Error(), "None") {
		t.Errorf("a value of two lines: %v", err)
	}
}

// TestMultipath: two portals are paths to one multipath device.
func TestMultipath(t *testing.T) {
	s := newSAN(t, nil)
	s.luns = map[string]string{"7": "sdx"}
	s.file("", "dev/dm-0")
	s.file("", "sys/block/dm-0/slaves/sdx1")
	s.file("", "sys/block/dm-0/slaves/sdx2")
	r := request(func(in *v1.ISCSIPersistentVolumeSource) { in.Portals = []string{"10.0.0.2:3261"} })
	device, err := s.Connect(t.Context(), r)
	if err != nil || device != filepath.Join(s.root, "dev/dm-0") {
		t.Fatalf("%s, %v", device, err)
	}
	s.calls = nil
	if err := s.Unstage(t.Context(), "iface-default/10.0.0.1:3260-"+target+"-lun-7"); err != nil {
		t.Fatal(err)
	}
	s.want(
		"multipath -f "+filepath.Join(s.root, "dev/dm-0"),
		"iscsiadm -m node -p 10.0.0.1:3260 -T "+target+" --logout -I default",
		"iscsiadm -m node -p 10.0.0.1:3260 -T "+target+" -o delete -I default",
		"iscsiadm -m node -p 10.0.0.2:3261 -T "+target+" --logout -I default",
		"iscsiadm -m node -p 10.0.0.2:3261 -T "+target+" -o delete -I default",
	)
	s.deleted("sdx1", "1")
	s.deleted("sdx2", "1")
}

// TestPortalDown: one path is enough after all rounds. There is no multipath device, so the wait for
// it times out.
func TestPortalDown(t *testing.T) {
	clk := testclock.NewFakeClock(time.Now())
	s := newSAN(t, clk)
	s.luns, s.down = map[string]string{"7": "sdx"}, map[string]bool{"10.0.0.1:3260": true}
	r := request(func(in *v1.ISCSIPersistentVolumeSource) { in.Portals = []string{"10.0.0.2"} })
	type outcome struct {
		device string
		err    error
	}
	done := make(chan outcome, 1)
	go func() { device, err := s.Connect(t.Context(), r); done <- outcome{device, err} }()
	for {
		select {
		case got := <-done:
			if got.err != nil || got.device != filepath.Join(s.root, "dev/sdx2") {
				t.Errorf("%+v", got)
			}
			tries := 0
			for _, call := range s.calls {
				if strings.HasSuffix(call, "-p 10.0.0.1:3260 -I default --discover") {
					tries++
				}
			}
			if tries != maxRounds {
				t.Errorf("%d tries, want %d", tries, maxRounds)
			}
			return
		case <-time.After(time.Millisecond):
			if clk.HasWaiters() {
				clk.Step(pollPeriod)
			}
		}
	}
}

func TestNoPath(t *testing.T) {
	s := newSAN(t, nil)
	s.down["10.0.0.1:3260"] = true
	_, err := s.Connect(t.Context(), request(nil))
	if want := "failed to get any path for iscsi disk, last err seen:\niscsi: failed to sendtargets to portal 10.0.0.1:3260, err exit status 4: connect: no route to host"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	s.want(
		"iscsiadm -m iface -I default -o show",
		"iscsiadm -m discoverydb -t sendtargets -p 10.0.0.1:3260 -I default -o new",
		"iscsiadm -m discoverydb -t sendtargets -p 10.0.0.1:3260 -I default --discover",
		"iscsiadm -m discoverydb -t sendtargets -p 10.0.0.1:3260 -I default -o delete",
	)
}

// TestErrorsContainNoPasswords, whichever call of iscsiadm fails.
func TestErrorsContainNoPasswords(t *testing.T) {
	s := newSAN(t, nil)
	s.secret = &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "chap"}, Data: map[string][]byte{"node.session.auth.password": []byte("hidden")}}
	s.fails["CHAP"] = 6
	_, err := s.Connect(t.Context(), request(func(in *v1.ISCSIPersistentVolumeSource) {
		in.SessionCHAPAuth, in.SecretRef = true, &v1.SecretReference{Name: "chap"}
	}))
	if err == nil || strings.Contains(err.Error(), "hidden") || !strings.Contains(err.Error(), "exit status 6") {
		t.Error(err)
	}
}

func TestParseDirName(t *testing.T) {
	for name, want := range map[string]diskInfo{
		"iface-default/[fd00::1]:3260-iqn.2026-01.test:a-lun-1-lun-12": {Portals: []string{"[fd00::1]:3260"}, Iqn: "iqn.2026-01.test:a-lun-1", Lun: "12", Iface: "default"},
		"iface-x/my-store:3260-eui.02004567A425678D-lun-0":             {Portals: []string{"my-store:3260"}, Iqn: "eui.02004567A425678D", Lun: "0", Iface: "x"},
	} {
		got, err := parseDirName(name)
		if err != nil || got.Portals[0] != want.Portals[0] || got.Iqn != want.Iqn || got.Lun != want.Lun || got.Iface != want.Iface {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for _, name := range []string{"iface-default/disk", "default/1-iqn.x-lun-0", "iface-default/1-lun-0-iqn.x"} {
		if got, err := parseDirName(name); err == nil {
			t.Errorf("%s was parsed as %+v", name, got)
		}
	}
	for _, iqn := range []string{"iqn.x/../../..", "iqn.x/y"} {
		r := request(func(in *v1.ISCSIPersistentVolumeSource) { in.IQN = iqn })
		if id, err := New(Deps{}).DeviceID(t.Context(), r.Spec); err == nil {
			t.Errorf("%s has device ID %s", iqn, id)
		}
	}
}

// TestWriteRecord: a record is complete or not changed.
func TestWriteRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "default")
	for before, want := range map[string]string{
		"# BEGIN RECORD 2.1\n# END RECORD\n":                                      "# BEGIN RECORD 2.1\nk = v = w\n# END RECORD\n",
		"# BEGIN RECORD 2.1\nk = old\nk.x = 1\nunset = 2\n# END RECORD\n# more\n": "# BEGIN RECORD 2.1\nk.x = 1\nk = v = w\n# END RECORD\n# more\n",
		"# BEGIN RECORD 2.1\nk = old\n":                                           "",
		"":                                                                        "",
	} {
		if err := os.WriteFile(path, []byte(before), 0o644); err != nil {
			t.Fatal(err)
		}
		err := writeRecord(path, []string{"k", "unset"}, map[string]string{"k": "v = w"})
		got, readErr := os.ReadFile(path)
		if want == "" {
			if err == nil || string(got) != before {
				t.Errorf("%q: %v, %q", before, err, got)
			}
			continue
		}
		info, statErr := os.Stat(path)
		if err != nil || readErr != nil || statErr != nil || string(got) != want || info.Mode() != 0o600 {
			t.Errorf("%q: %v %v %v, %q, want %q", before, err, readErr, statErr, got, want)
		}
	}
}
