package volume

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/volume/blockdev"
	"swiftlet/internal/volume/plugin"
)

// Device is one raw block volume of a container.
type Device struct {
	HostPath      string
	ContainerPath string
	// Permissions are cgroup device permissions: m to mknod, r to read, w to write.
	Permissions string
}

// mapBlock maps a raw block volume for the pod.
func (v *Volumes) mapBlock(ctx context.Context, kind plugin.Plugin, r plugin.Request) (plugin.Result, error) {
	mapper, ok := kind.(plugin.BlockMapper)
	if !ok {
		return plugin.Result{}, failed(reasonMap, "MapVolume.FindMapperPluginBySpec", r.Name(), errors.New("no volume plugin matched"))
	}
	p := plugin.Published{PodUID: r.Pod.UID, PodDir: r.PodDir, Name: r.Name(), Block: true}
	m := blockMap(kind, mapper, p)
	if err := m.CreateLink(); err != nil {
		return plugin.Result{}, failed(reasonMap, "MapVolume.MapBlockVolume", r.Name(), err)
	}
	result, err := mapper.MapDevice(ctx, r)
	if err != nil {
		return plugin.Result{}, failed(reasonMap, "MapVolume.MapPodDevice", r.Name(), err)
	}
	if err := m.Create(v.deps.Mounter, result.HostPath); err != nil {
		return plugin.Result{}, failed(reasonMap, "MapVolume.MapBlockVolume", r.Name(), err)
	}
	for _, path := range []string{fmt.Sprintf("globalMapPath %q", mapper.MapDir(p.Name)), fmt.Sprintf("volumeMapPath %q", filepath.Dir(m.Link))} {
		v.deps.Events.Eventf(pod.EventRef(r.Pod, ""), v1.EventTypeNormal, "SuccessfulMountVolume",
			"MapVolume.MapPodDevice succeeded for volume %q %s", r.Name(), path)
	}
	result.HostPath = m.Link
	result.ReadOnly = result.ReadOnly || r.ClaimReadOnly
	return result, nil
}

// blockMap is the link and bind mount of a raw block volume.
func blockMap(kind plugin.Plugin, mapper plugin.BlockMapper, p plugin.Published) blockdev.Map {
	return blockdev.Map{Link: p.Dir(kind.Name()), BindMount: filepath.Join(mapper.MapDir(p.Name), string(p.PodUID))}
}

// blockMapOnDisk is blockMap for a volume that was found on disk.
func blockMapOnDisk(kind plugin.Plugin, mapper plugin.BlockMapper, p plugin.Published) (blockdev.Map, error) {
	finder, ok := kind.(plugin.MapDirFinder)
	if !ok {
		return blockMap(kind, mapper, p), nil
	}
	dir, err := finder.FindMapDir(p)
	if err != nil {
		return blockdev.Map{}, err
	}
	m := blockdev.Map{Link: p.Dir(kind.Name())}
	if dir != "" {
		m.BindMount = filepath.Join(dir, string(p.PodUID))
	}
	return m, nil
}

// ContainerDevices converts the container's volumeDevices. mounted is the result of Mount.
func (v *Volumes) ContainerDevices(c *v1.Container, mounted map[string]Mounted) ([]Device, error) {
	var devices []Device
	for _, want := range c.VolumeDevices {
		if !filepath.IsAbs(want.DevicePath) {
			return nil, fmt.Errorf("error DevicePath `%s` must be an absolute path", want.DevicePath)
		}
		vol, ok := mounted[want.Name]
		if !ok || !vol.Block {
			return nil, fmt.Errorf("cannot find volume %q to pass into container %q", want.Name, c.Name)
		}
		d := Device{HostPath: vol.HostPath, ContainerPath: want.DevicePath, Permissions: "mrw"}
		if vol.ReadOnly {
			d.Permissions = "r"
		}
		devices = append(devices, d)
	}
	return devices, nil
}
