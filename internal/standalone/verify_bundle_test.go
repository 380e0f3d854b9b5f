package standalone

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestOnlyTheBundleOfTheBuildRuns(t *testing.T) {
	cfg := fakeBundle(t)
	if err := checkBundle(cfg); err != nil {
		t.Errorf("the bundle of the build: %v", err)
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, cfg *Config)
		want   []string // in the error; none if the bundle may run
	}{
		"program_was_changed": {func(t *testing.T, cfg *Config) {
			writeProgram(t, cfg.Paths.program("runc"), "another")
		}, []string{"/runc is not the program that this executable was built with", "--verify-bundle=false"}},
		"two_programs_were_changed": {func(t *testing.T, cfg *Config) {
			writeProgram(t, cfg.Paths.program("ctr"), "another")
			writeProgram(t, cfg.Paths.program("cni/portmap"), "another")
		}, []string{"/ctr is not", "/cni/portmap is not"}},
		"program_has_no_hash": {func(_ *testing.T, cfg *Config) {
			cfg.BundleHashes = maps.Clone(cfg.BundleHashes)
			delete(cfg.BundleHashes, "containerd")
		}, []string{"/containerd is not"}},
		"program_is_missing": {func(t *testing.T, cfg *Config) {
			if err := os.Remove(cfg.Paths.program("cni/bridge")); err != nil {
				t.Fatal(err)
			}
		}, []string{"/cni/bridge: no such file"}},
		"API_server_was_changed": {func(t *testing.T, cfg *Config) {
			cfg.API = &APIConfig{Programs: t.TempDir()}
			for _, name := range apiPrograms {
				writeProgram(t, cfg.API.program(name), name)
			}
			cfg.BundleHashes = maps.Clone(cfg.BundleHashes)
			sum, err := hashFile(cfg.API.program("kubectl"))
			if err != nil {
				t.Fatal(err)
			}
			cfg.BundleHashes["api/kubectl"] = sum
		}, []string{"/swiftlet-apiserver is not"}},
		"executable_has_no_hashes": {func(_ *testing.T, cfg *Config) {
			cfg.BundleHashes = nil
		}, []string{"was built without the hashes of its bundle", "--verify-bundle=false"}},
		"user_accepts_any_bundle": {func(t *testing.T, cfg *Config) {
			writeProgram(t, cfg.Paths.program("runc"), "another")
			cfg.AnyBundle = true
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := fakeBundle(t)
			c.change(t, &cfg)
			err := checkBundle(cfg)
			if (err == nil) != (c.want == nil) {
				t.Fatalf("got %v, want an error with %q", err, c.want)
			}
			for _, text := range c.want {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("error lacks %q: %v", text, err)
				}
			}
		})
	}
}

// The check is one of those that run before anything is started.
func TestPreflightVerifiesBundle(t *testing.T) {
	cfg := fakeBundle(t)
	writeProgram(t, cfg.Paths.program("containerd"), "another")
	err := preflight(cfg, clocktesting.NewFakeClock(time.Now()))
	if err == nil || !strings.Contains(err.Error(), "check bundle: "+cfg.Paths.program("containerd")+" is not") {
		t.Errorf("preflight does not reject a changed containerd: %v", err)
	}
}

func TestParseBundleHashes(t *testing.T) {
	sum := strings.Repeat("aB", 32)
	got, err := ParseBundleHashes("runc=" + sum + ",cni/bridge=" + sum)
	want := BundleHashes{"runc": strings.ToLower(sum), "cni/bridge": strings.ToLower(sum)}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if got, err := ParseBundleHashes(""); err != nil || len(got) != 0 {
		t.Errorf("an empty list: %v, %v", got, err)
	}
	for _, list := range []string{"runc", "runc=", "runc=12", "runc=" + sum + ",", "runc=" + strings.Repeat("zz", 32)} {
		if _, err := ParseBundleHashes(list); err == nil {
			t.Errorf("%q was accepted", list)
		}
	}
}

// fakeBundle returns a configuration with a bundle of small files and their hashes.
func fakeBundle(t *testing.T) Config {
	t.Helper()
	dir := t.TempDir()
	paths, err := NewPaths(t.TempDir(), "/run/swiftlet", dir)
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Paths: paths, BundleHashes: BundleHashes{}}
	for _, name := range bundled {
		writeProgram(t, filepath.Join(dir, name), "#!/bin/sh\n# "+name)
		if cfg.BundleHashes[name], err = hashFile(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return cfg
}

func writeProgram(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}
