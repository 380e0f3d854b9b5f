package server

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	criVersion  = "v1"
	runtimeName = "docker" // begins the container IDs in the status of pods
)

// Version names the engine.
func (s *Server) Version(ctx context.Context, _ *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	version, err := s.Engine.Version(ctx)
	if err != nil {
		return nil, err
	}
	return &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: runtimeName, RuntimeVersion: version, RuntimeApiVersion: criVersion}, nil
}

// Status says whether sandboxes can be started.
func (s *Server) Status(ctx context.Context, req *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	engineReady := &runtimeapi.RuntimeCondition{Type: runtimeapi.RuntimeReady, Status: true}
	networkReady := &runtimeapi.RuntimeCondition{Type: runtimeapi.NetworkReady, Status: true}
	answer := &runtimeapi.StatusResponse{
		Status:   &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{engineReady, networkReady}},
		Features: &runtimeapi.RuntimeFeatures{},
	}
	info, err := s.Engine.Info(ctx)
	if err != nil {
		engineReady.Status, engineReady.Reason, engineReady.Message = false, "DockerNotReady", err.Error()
	}
	if err := s.Network.Ready(ctx); err != nil {
		networkReady.Status, networkReady.Reason, networkReady.Message = false, "NetworkPluginNotReady", err.Error()
	}
	names := slices.Sorted(maps.Keys(info.Runtimes))
	for _, name := range append([]string{""}, names...) { // the empty name is the default
		answer.RuntimeHandlers = append(answer.RuntimeHandlers, &runtimeapi.RuntimeHandler{Name: name, Features: &runtimeapi.RuntimeHandlerFeatures{}})
	}
	if !req.GetVerbose() {
		return answer, nil
	}
	text, err := json.Marshal(map[string]any{"version": s.Build, "engine": info.ServerVersion, "storageDriver": info.Driver,
		"cgroupDriver": info.CgroupDriver, "cgroupVersion": info.CgroupVersion, "rootDir": info.DockerRootDir, "warnings": info.Warnings})
	if err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	answer.Info = map[string]string{"config": string(text)}
	return answer, nil
}

// RuntimeConfig names the cgroup driver of the engine.
func (s *Server) RuntimeConfig(ctx context.Context, _ *runtimeapi.RuntimeConfigRequest) (*runtimeapi.RuntimeConfigResponse, error) {
	info, err := s.Engine.Info(ctx)
	if err != nil {
		return nil, err
	}
	driver := runtimeapi.CgroupDriver_CGROUPFS
	if info.CgroupDriver == "systemd" {
		driver = runtimeapi.CgroupDriver_SYSTEMD
	}
	return &runtimeapi.RuntimeConfigResponse{Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: driver}}, nil
}

// UpdateRuntimeConfig accepts the node's pod CIDR, which only a network plugin without a configuration needs.
func (s *Server) UpdateRuntimeConfig(context.Context, *runtimeapi.UpdateRuntimeConfigRequest) (*runtimeapi.UpdateRuntimeConfigResponse, error) {
	return &runtimeapi.UpdateRuntimeConfigResponse{}, nil
}
