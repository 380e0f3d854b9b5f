package conformance

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"swiftlet/test/images"
)

// csiRecipes lists the images of tests that bring a CSI or DRA driver of their own. Of the
// CSI project's programs, provisioner and resizer can be built, in older versions than the
// names say; the rest are stand-ins, whose packages say what they leave out. There is no
// csi-snapshotter: its tests need a snapshot controller too.
var csiRecipes = []recipeOf{
	{"e2e-test-images/busybox:1.36.1-1", (*maker).busyboxImage},
	{"sig-storage/hostpathplugin:v1.17.1", standIn("hostpathplugin", "hostpathplugin")},
	{"sig-storage/csi-node-driver-registrar:v2.17.0", standIn("registrar", "csi-node-driver-registrar")},
	{"sig-storage/csi-attacher:v4.12.0", standIn("attacher", "csi-attacher")},
	{"sig-storage/csi-provisioner:v6.3.0", sidecar("csi-provisioner")},
	{"sig-storage/csi-resizer:v2.2.0", sidecar("csi-resizer")},
}

// bringsDriver finds the tests that csiRecipes is for.
var bringsDriver = regexp.MustCompile(`\bCSI\b|\bDRA\b|\[Feature:DynamicResourceAllocation\]|\[Driver: csi`)

// recipesFor leaves out what takes minutes to build where no test needs it.
func recipesFor(tests []string) []recipeOf {
	if slices.ContainsFunc(tests, bringsDriver.MatchString) {
		return slices.Concat(recipes, csiRecipes)
	}
	return recipes
}

// standIn makes an image of one of the programs below test/conformance/standins, under the
// name that the original has in its image.
func standIn(source, program string) func(*maker, context.Context) (v1.Image, error) {
	return func(m *maker, ctx context.Context) (v1.Image, error) {
		dir, err := os.MkdirTemp("", "standin-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		built := filepath.Join(dir, program)
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", built,
			"./test/conformance/standins/"+source)
		cmd.Dir, cmd.Env = m.programs.Root, append(os.Environ(), "CGO_ENABLED=0")
		if said, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build stand-in: %w: %s", err, said)
		}
		return m.entrypoint(ctx, built, program)
	}
}

// sidecar makes an image of one of the CSI project's own programs.
func sidecar(program string) func(*maker, context.Context) (v1.Image, error) {
	return func(m *maker, ctx context.Context) (v1.Image, error) {
		build := exec.CommandContext(ctx, filepath.Join(m.programs.Root, "hack", "build-csi-sidecars.sh"))
		build.Stderr = os.Stderr
		dir, err := build.Output()
		if err != nil {
			return nil, fmt.Errorf("build sidecars: %w", err)
		}
		return m.entrypoint(ctx, filepath.Join(strings.TrimSpace(string(dir)), program), program)
	}
}

// entrypoint is the program upon busybox: tests run a shell beside some of them.
func (m *maker) entrypoint(ctx context.Context, path, name string) (v1.Image, error) {
	base, err := m.baseLayer(ctx)
	if err != nil {
		return nil, err
	}
	program, err := file(path, name, 0o755)
	if err != nil {
		return nil, err
	}
	config := v1.Config{Env: []string{images.SearchPath}, Entrypoint: []string{"/" + name}}
	return compose(config, []v1.Layer{base}, program)
}
