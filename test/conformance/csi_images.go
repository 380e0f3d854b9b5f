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

// csiRecipes lists the images of tests that deploy a CSI or DRA driver. csi-provisioner and
// csi-resizer are built from source, in older versions than the tags say. The others are stand-ins;
// their package comments say what they leave out. There is no csi-snapshotter: its tests also need
// a snapshot controller.
var csiRecipes = []imageRecipe{
	{"e2e-test-images/busybox:1.36.1-1", (*imageBuilder).busyboxImage},
	{"sig-storage/hostpathplugin:v1.17.1", standIn("hostpathplugin", "hostpathplugin")},
	{"sig-storage/csi-node-driver-registrar:v2.17.0", standIn("registrar", "csi-node-driver-registrar")},
	{"sig-storage/csi-attacher:v4.12.0", standIn("attacher", "csi-attacher")},
	{"sig-storage/csi-provisioner:v6.3.0", sidecar("csi-provisioner")},
	{"sig-storage/csi-resizer:v2.2.0", sidecar("csi-resizer")},
}

// needsDriverImages matches the tests that need csiRecipes.
var needsDriverImages = regexp.MustCompile(`\bCSI\b|\bDRA\b|\[Feature:DynamicResourceAllocation\]|\[Driver: csi`)

// objectsOnly matches tests of driver objects, among them some of needsDriverImages, that run no driver.
var objectsOnly = regexp.MustCompile(`CSI Conformance|ResourceQuota`)

// recipesFor includes csiRecipes, which take minutes to build, only if a test needs them.
func recipesFor(tests []string) []imageRecipe {
	if slices.ContainsFunc(tests, func(t string) bool { return needsDriverImages.MatchString(t) && !objectsOnly.MatchString(t) }) {
		return slices.Concat(recipes, csiRecipes)
	}
	return recipes
}

// standIn builds an image of a program below test/conformance/standins, under the name of the
// original program.
func standIn(source, program string) func(*imageBuilder, context.Context) (v1.Image, error) {
	return func(m *imageBuilder, ctx context.Context) (v1.Image, error) {
		dir, err := os.MkdirTemp("", "standin-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		built := filepath.Join(dir, program)
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", built,
			"./test/conformance/standins/"+source)
		cmd.Dir, cmd.Env = m.programs.Root, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build stand-in: %w: %s", err, out)
		}
		return m.entrypoint(ctx, built, program)
	}
}

// sidecar builds an image of a program of the CSI project.
func sidecar(program string) func(*imageBuilder, context.Context) (v1.Image, error) {
	return func(m *imageBuilder, ctx context.Context) (v1.Image, error) {
		build := exec.CommandContext(ctx, filepath.Join(m.programs.Root, "hack", "build-csi-sidecars.sh"))
		build.Stderr = os.Stderr
		dir, err := build.Output()
		if err != nil {
			return nil, fmt.Errorf("build sidecars: %w", err)
		}
		return m.entrypoint(ctx, filepath.Join(strings.TrimSpace(string(dir)), program), program)
	}
}

// entrypoint builds an image of the program and busybox: tests run a shell in some of them.
func (m *imageBuilder) entrypoint(ctx context.Context, path, name string) (v1.Image, error) {
	base, err := m.baseLayer(ctx)
	if err != nil {
		return nil, err
	}
	program, err := images.File(path, name, 0o755)
	if err != nil {
		return nil, err
	}
	config := v1.Config{Env: []string{images.SearchPath}, Entrypoint: []string{"/" + name}}
	return compose(config, []v1.Layer{base}, program)
}
