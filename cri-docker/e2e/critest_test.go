package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// explained are tests of critest that fail, with the reason.
var explained = map[string]string{
	"[k8s.io] Image Manager public image with digest should be pulled and removed [Conformance]": "an image with that digest cannot be built here; TestPullWithCredentials pulls by digest",
}

// serveRegistries serves the images of all registries on port 80 of the box. Docker tries that port for
// registries of --insecure-registry.
func serveRegistries(t *testing.T, images map[string]string) {
	t.Helper()
	var listener net.Listener
	err := ns.WithNetNSPath(box.NetNS(), func(ns.NetNS) (err error) {
		listener, err = net.Listen("tcp", "127.0.0.1:80")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close() // Serve returns its error
		<-done
	})
	hosts := map[string]bool{}
	for ref, file := range images {
		image, err := tarball.ImageFromPath(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		host, path, _ := strings.Cut(ref, "/")
		hosts[host] = true
		tag, err := name.NewTag("127.0.0.1:80/"+path, name.Insecure)
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(tag, image, remote.WithTransport(inBox(80))); err != nil {
			t.Fatal(err)
		}
	}
	file := box.Path("hosts")
	text := "127.0.0.1 localhost\n"
	for host := range hosts {
		text += "127.0.0.1 " + host + "\n"
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := box.Command(t.Context(), "mount", "--bind", file, "/etc/hosts").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// critestImages builds the images that critest pulls and returns their files by name.
func critestImages(t *testing.T) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "run", "./test/critools/cmd/images", t.TempDir())
	cmd.Dir, cmd.Stderr = "../..", os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	lines := bufio.NewScanner(strings.NewReader(string(out)))
	for lines.Scan() {
		ref, file, _ := strings.Cut(lines.Text(), " ")
		files[ref] = file
	}
	return files
}

// spec is a test in ginkgo's report.
type spec struct {
	ContainerHierarchyTexts []string
	LeafNodeText, State     string
	Failure                 struct{ Message string }
}

// TestCritest runs critest. It needs SWIFTLET_CRITEST=1: it takes several minutes.
func TestCritest(t *testing.T) {
	if os.Getenv("SWIFTLET_CRITEST") == "" {
		t.Skip("set SWIFTLET_CRITEST=1")
	}
	serveRegistries(t, critestImages(t))
	build := exec.CommandContext(t.Context(), "../../hack/build-critools.sh")
	build.Stderr = os.Stderr
	dir, err := build.Output()
	if err != nil {
		t.Fatal(err)
	}
	tools := strings.TrimSpace(string(dir))
	out, err := filepath.Abs("../../bin/critest-docker")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(out, "critest.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	args := []string{"--procs=2", "--timeout=30m", "--no-color", "--keep-going", "--skip=benchmark", "--output-dir=" + out, "--json-report=report.json"}
	if focus := os.Getenv("SWIFTLET_CRITEST_FOCUS"); focus != "" {
		args = append(args, "--focus="+focus)
	}
	args = append(args, filepath.Join(tools, "critest.test"), "--", "-runtime-endpoint=unix://"+shared.socket(), "-image-endpoint=unix://"+shared.socket())
	cmd := box.Command(t.Context(), filepath.Join(tools, "ginkgo"), args...)
	cmd.Stdout, cmd.Stderr = file, file
	runErr := cmd.Run() // an error if a test failed; the report has the details
	judge(t, filepath.Join(out, "report.json"), runErr)
	log, _ := os.ReadFile(box.Path(shared.name + ".log"))
	if err := os.WriteFile(filepath.Join(out, "cri-docker.log"), log, 0o600); err != nil {
		t.Error(err)
	}
}

func judge(t *testing.T, report string, runErr error) {
	t.Helper()
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatalf("%v, %v", err, runErr)
	}
	var suites []struct{ SpecReports []spec }
	if err := json.Unmarshal(text, &suites); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, suite := range suites {
		for _, s := range suite.SpecReports {
			if s.LeafNodeText == "" {
				continue
			}
			counts[s.State]++
			title := strings.Join(append(s.ContainerHierarchyTexts, s.LeafNodeText), " ")
			if s.State == "passed" || s.State == "skipped" {
				continue
			}
			if reason := explained[title]; reason != "" {
				t.Logf("explained: %s: %s", title, reason)
				continue
			}
			message, _, _ := strings.Cut(s.Failure.Message, "\n")
			t.Errorf("%s: %s: %s", s.State, title, message)
		}
	}
	t.Logf("critest: %v", counts)
}
