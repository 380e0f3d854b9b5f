package volume

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

// CVE-2024-10220 and CVE-2025-1767: a gitRepo volume runs git on the node, with hooks of the repository and
// with repositories of the node. There is no such plugin.
func TestGitRepoIsRefused(t *testing.T) {
	n := newNode(t)
	n.cfg.MountTimeout = time.Second
	repository := t.TempDir()
	if err := os.WriteFile(filepath.Join(repository, "secret"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, source := range []v1.GitRepoVolumeSource{
		{Repository: repository, Directory: "."},
		{Repository: "https://example.invalid/repository.git", Directory: ".git"},
	} {
		_, err := n.Mount(t.Context(), n.pod(v1.VolumeSource{GitRepo: &source}))
		var refused *MountError
		if !errors.As(err, &refused) || refused.Volumes["vol"] == nil {
			t.Errorf("a volume of %s was mounted: %v", source.Repository, err)
		}
	}
}

// CVE-2017-1002102: containers cannot write to volumes whose files the agent replaces, so that no link of
// theirs is followed when it does.
func TestVolumesOfTheAgentAreReadOnly(t *testing.T) {
	for _, k := range kinds {
		if k.source.ConfigMap == nil && k.source.Secret == nil && k.source.DownwardAPI == nil && k.source.Projected == nil {
			continue
		}
		n := newNode(t)
		pod := n.pod(k.source)
		n.mount(pod)
		c := &v1.Container{Name: "c", VolumeMounts: []v1.VolumeMount{{Name: "vol", MountPath: "/vol"}}}
		mounts, err := n.ContainerMounts(t.Context(), pod, c, n.MountedVolumes(pod.UID), MountOptions{})
		if err != nil || len(mounts) != 1 || !mounts[0].ReadOnly {
			t.Errorf("%s: %+v, %v; want a mount that is read-only", k.name, mounts, err)
		}
	}
}

// CVE-2021-25741: a directory of the volume is replaced by a link out of it, where a directory of the same
// name exists, after the path was checked and before it is mounted.
func TestSubPathRaceToExistingDirectory(t *testing.T) {
	n := newNode(t)
	dir, part := subPathPod(t, n)
	outside := t.TempDir()
	place, link := filepath.Join(dir, "p"), filepath.Join(dir, "link")
	for _, path := range []string{filepath.Join(place, "sub"), filepath.Join(outside, "sub", "canary")} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	var done atomic.Int64
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for !stop.Load() {
			if exchange(place, link) == nil {
				done.Add(1)
			}
		}
	})
	for mounted := 0; mounted < 1000 || done.Load() < swaps; {
		target, err := part("p/sub")
		if err != nil {
			continue
		}
		mounted++
		if _, err := os.Lstat(filepath.Join(target, "canary")); err == nil {
			t.Error("the mount shows the outside")
			break
		}
	}
	stop.Store(true)
	swapping.Wait()
}
