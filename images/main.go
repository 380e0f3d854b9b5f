// Images builds the container images that come with Swiftlet, without a registry and
// without a container runtime: `go run ./images OUT` writes one OCI image layout per
// image, as a tar file, into OUT. The same sources and compilers give the same bytes.
package main

import (
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
)

// imageSpec is one image, which contains a single static binary.
type imageSpec struct {
	name   string // image name in containers
	file   string // name of the tar file
	binary string // path of the binary in the image
	user   string
	build  func(out string) *exec.Cmd
}

// imageSpecs need gcc and go. The pause image has the name of the sandbox image in the bundled
// runtime's configuration, so that no pod start needs a registry.
var imageSpecs = []imageSpec{
	{"registry.k8s.io/pause:3.10", "pause.tar", "/pause", "65535:65535", buildPause},
	{"docker.io/swiftlet/example:1", "example.tar", "/example", "65532:65532", buildExample},
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
	if len(os.Args) != 2 {
		log.Fatal("usage: go run ./images OUT   (from the top of the repository)")
	}
	if err := buildAll(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func buildAll(out string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("make output directory: %w", err)
	}
	for _, p := range imageSpecs {
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
