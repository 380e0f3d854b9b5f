package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/build"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// kubernetes is the module whose version is compared. The libraries of its repository are modules
// of their own: v0.37.1 of each belongs to v1.37.1.
const kubernetes = "k8s.io/kubernetes"

// modules finds the directories of packages in a version of Kubernetes and in the modules that it
// requires. It downloads a module when one of its packages is first used.
type modules struct {
	ctx      context.Context
	versions map[string]string // module path → version
	dirs     map[string]string // module path → directory
}

func newModules(ctx context.Context, version string) (*modules, error) {
	minor, ok := strings.CutPrefix(version, "v1.")
	if !ok {
		return nil, fmt.Errorf("version %q is not of the form v1.37.1", version)
	}
	m := &modules{ctx: ctx, versions: map[string]string{kubernetes: version}, dirs: map[string]string{}}
	root, err := m.download(kubernetes)
	if err != nil {
		return nil, err
	}
	text, err := run(ctx, "go", "mod", "edit", "-json", filepath.Join(root, "go.mod"))
	if err != nil {
		return nil, err
	}
	var mod struct {
		Require []struct{ Path, Version string }
		Replace []struct{ Old, New struct{ Path string } }
	}
	if err := json.Unmarshal(text, &mod); err != nil {
		return nil, fmt.Errorf("read go.mod of %s %s: %w", kubernetes, version, err)
	}
	for _, r := range mod.Require {
		m.versions[r.Path] = r.Version
	}
	for _, r := range mod.Replace {
		if strings.HasPrefix(r.New.Path, "./staging/") {
			m.versions[r.Old.Path] = "v0." + minor
		}
	}
	return m, nil
}

// directory returns the directory of a package. Only packages of the standard library, of
// Kubernetes and of cAdvisor are found, as no other declares anything that is compared.
func (m *modules) directory(path string) (string, error) {
	if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") {
		return filepath.Join(build.Default.GOROOT, "src", path), nil
	}
	if !strings.HasPrefix(path, "k8s.io/") && !strings.HasPrefix(path, "github.com/google/cadvisor") {
		return "", errNotCompared
	}
	module := path
	for m.versions[module] == "" {
		cut := strings.LastIndexByte(module, '/')
		if cut < 0 {
			return "", fmt.Errorf("find package %s: no module has it", path)
		}
		module = module[:cut]
	}
	dir, err := m.download(module)
	return filepath.Join(dir, strings.TrimPrefix(path, module)), err
}

var errNotCompared = errors.New("declares nothing that is compared")

// download returns the directory of a module. It retries, as a proxy may reject requests for a while.
func (m *modules) download(module string) (string, error) {
	if dir, ok := m.dirs[module]; ok {
		return dir, nil
	}
	var errs error
	for try := range 4 {
		text, err := run(m.ctx, "go", "mod", "download", "-json", module+"@"+m.versions[module])
		var answer struct{ Dir string }
		if err == nil {
			err = json.Unmarshal(text, &answer)
		}
		if err == nil {
			m.dirs[module] = answer.Dir
			return answer.Dir, nil
		}
		errs = errors.Join(errs, err)
		select {
		case <-m.ctx.Done():
			return "", m.ctx.Err()
		case <-time.After(time.Duration(try) * 10 * time.Second):
		}
	}
	return "", fmt.Errorf("download %s %s: %w", module, m.versions[module], errs)
}

// run returns the standard output of a command that is run outside of any module.
func run(ctx context.Context, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = os.TempDir()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("%s %s: %w: %s%s", name, strings.Join(args, " "), err, out, stderr.String())
	}
	return out, nil
}
