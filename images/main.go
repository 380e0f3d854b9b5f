// Images builds the container images that come with Swiftlet, without a registry and
// without a container runtime: `go run ./images OUT` writes one OCI image layout per
// image, as a tar file, into OUT. The same sources and compilers give the same bytes.
// With -gpu it builds those of examples/gpu.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
)

// imageSpec is one image, which contains a single binary.
type imageSpec struct {
	name   string // image name in containers
	file   string // name of the tar file
	binary string // path of the binary in the image
	user   string
	build  func(out string) *exec.Cmd
	// dynamic: the binary is linked with glibc, so the image has that, too.
	dynamic bool
}

// imageSpecs need gcc and go. The pause image has the name of the sandbox image in the bundled
// runtime's configuration, so that no pod start needs a registry.
var imageSpecs = []imageSpec{
	{"registry.k8s.io/pause:3.10", "pause.tar", "/pause", "65535:65535", buildPause, false},
	{"docker.io/swiftlet/example:1", "example.tar", "/example", "65532:65532", buildExample, false},
}

func buildPause(out string) *exec.Cmd {
	return exec.Command("gcc", "-Os", "-Wall", "-Wextra", "-Werror", "-static", "-s",
		"-Wl,--build-id=none", "-o", out, "images/pause/pause.c")
}

func buildExample(out string) *exec.Cmd {
	c := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid=",
		"-o", out, "./images/example")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	return c
}

func main() {
	log.SetFlags(0)
	programs := flag.String("gpu", "", "build the images of examples/gpu, with the programs of hack/build-gpu.sh in this directory")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: go run ./images [-gpu PROGRAMS] OUT   (from the top of the repository)")
	}
	specs := imageSpecs
	if *programs != "" {
		specs = gpuImages(*programs)
	}
	if err := buildAll(specs, flag.Arg(0)); err != nil {
		log.Fatal(err)
	}
}

func buildAll(specs []imageSpec, out string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("make output directory: %w", err)
	}
	for _, p := range specs {
		digest, err := p.make(filepath.Join(out, p.file))
		if err != nil {
			return fmt.Errorf("build %s: %w", p.name, err)
		}
		log.Printf("built    %s %s", p.name, digest)
	}
	return nil
}

// make compiles the binary and writes the image to file.
func (p imageSpec) make(file string) (digest string, err error) {
	work, err := os.MkdirTemp("", "swiftlet-image-")
	if err != nil {
		return "", fmt.Errorf("make temporary directory: %w", err)
	}
	defer os.RemoveAll(work)
	binary := filepath.Join(work, "binary")
	compile := p.build(binary)
	compile.Stdout, compile.Stderr = os.Stderr, os.Stderr
	if err := compile.Run(); err != nil {
		return "", fmt.Errorf("%s: %w", compile.Path, err)
	}
	image, err := p.assemble(binary)
	if err != nil {
		return "", err
	}
	return writeLayout(image, p.name, filepath.Join(work, "layout"), file)
}
