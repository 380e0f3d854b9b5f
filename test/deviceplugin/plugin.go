package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"google.golang.org/grpc"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// plugin serves the device plugin API.
type plugin struct {
	pluginapi.UnimplementedDevicePluginServer
	options
	mu sync.Mutex // guards calls.jsonl
}

func (o options) pluginOptions() *pluginapi.DevicePluginOptions {
	return &pluginapi.DevicePluginOptions{PreStartRequired: o.preStart, GetPreferredAllocationAvailable: o.preferred != ""}
}

func (p *plugin) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return p.pluginOptions(), nil
}

// ListAndWatch sends the devices, and again whenever the directory changes.
func (p *plugin) ListAndWatch(_ *pluginapi.Empty, stream grpc.ServerStreamingServer[pluginapi.ListAndWatchResponse]) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close()
	if err := watcher.Add(filepath.Join(p.state, "devices")); err != nil {
		return err
	}
	for {
		devices, err := p.devices()
		if err != nil {
			return err
		}
		if err := stream.Send(&pluginapi.ListAndWatchResponse{Devices: devices}); err != nil {
			return err
		}
		select {
		case <-watcher.Events:
		case <-stream.Context().Done():
			return nil
		}
	}
}

func (p *plugin) devices() ([]*pluginapi.Device, error) {
	dir := filepath.Join(p.state, "devices")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []*pluginapi.Device
	for _, e := range entries {
		health, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil || len(health) == 0 { // being written
			continue
		}
		all = append(all, &pluginapi.Device{ID: e.Name(), Health: strings.TrimSpace(string(health))})
	}
	return all, nil
}

func (p *plugin) GetPreferredAllocation(_ context.Context, request *pluginapi.PreferredAllocationRequest) (*pluginapi.PreferredAllocationResponse, error) {
	answer := &pluginapi.PreferredAllocationResponse{}
	for _, c := range request.ContainerRequests {
		ids := c.MustIncludeDeviceIDs
		if slices.Contains(c.AvailableDeviceIDs, p.preferred) && !slices.Contains(ids, p.preferred) {
			ids = append(ids, p.preferred)
		}
		answer.ContainerResponses = append(answer.ContainerResponses, &pluginapi.ContainerPreferredAllocationResponse{DeviceIDs: ids})
	}
	return answer, nil
}

func (p *plugin) Allocate(ctx context.Context, request *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	if err := p.waitWhileHanging(ctx); err != nil {
		return nil, err
	}
	answer := &pluginapi.AllocateResponse{}
	for _, c := range request.ContainerRequests {
		response, err := p.allocate(c.DevicesIds)
		if err != nil {
			return nil, err
		}
		answer.ContainerResponses = append(answer.ContainerResponses, response)
	}
	return answer, nil
}

// waitWhileHanging blocks while the file hang exists, and writes "hanging" to it.
func (p *plugin) waitWhileHanging(ctx context.Context) error {
	file := filepath.Join(p.state, "hang")
	for {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && string(text) != hanging {
			err = os.WriteFile(file, []byte(hanging), 0o644)
		}
		if err != nil {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

const hanging = "hanging"

func (p *plugin) allocate(ids []string) (*pluginapi.ContainerAllocateResponse, error) {
	ids = slices.Sorted(slices.Values(ids))
	response := &pluginapi.ContainerAllocateResponse{
		Envs:        map[string]string{"SAMPLE_DEVICES": strings.Join(ids, ",")},
		Annotations: map[string]string{"sample/devices": strings.Join(ids, ",")},
	}
	for _, id := range ids {
		file := filepath.Join(p.state, "file-"+id)
		if err := os.WriteFile(file, []byte(id), 0o644); err != nil {
			return nil, err
		}
		response.Mounts = append(response.Mounts, &pluginapi.Mount{HostPath: file, ContainerPath: "/run/sample/" + id, ReadOnly: true})
		response.Devices = append(response.Devices, &pluginapi.DeviceSpec{HostPath: "/dev/zero", ContainerPath: "/dev/sample-" + id, Permissions: "r"})
		if p.cdi != "" {
			if err := p.writeCDISpec(id); err != nil {
				return nil, err
			}
			response.CdiDevices = append(response.CdiDevices, &pluginapi.CDIDevice{Name: "sample.swiftlet.dev/device=" + id})
		}
	}
	return response, p.recordCall("Allocate", ids)
}

// writeCDISpec writes the CDI specification of a device, for the container runtime.
func (p *plugin) writeCDISpec(id string) error {
	if err := os.MkdirAll(p.cdi, 0o755); err != nil {
		return err
	}
	text := fmt.Sprintf(`{"cdiVersion":"0.6.0","kind":"sample.swiftlet.dev/device","devices":[{"name":%q,"containerEdits":{"env":["SAMPLE_CDI_NAME=%s"]}}]}`, id, id)
	return os.WriteFile(filepath.Join(p.cdi, "sample-"+id+".json"), []byte(text), 0o644)
}

func (p *plugin) PreStartContainer(_ context.Context, request *pluginapi.PreStartContainerRequest) (*pluginapi.PreStartContainerResponse, error) {
	return &pluginapi.PreStartContainerResponse{}, p.recordCall("PreStartContainer", slices.Sorted(slices.Values(request.DevicesIds)))
}

// recordCall appends a call to calls.jsonl.
func (p *plugin) recordCall(method string, ids []string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, err := os.OpenFile(filepath.Join(p.state, "calls.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	return json.NewEncoder(f).Encode(map[string]any{"method": method, "devices": ids})
}
