package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// topologyKey is the topology key of volumes.
const topologyKey = "topology.hostpath.csi/node"

// driver serves all three services.
type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer
	options

	mu       sync.Mutex
	volumes  map[string]int64 // id → size
	attached map[string]bool
}

func newDriver(o options) *driver {
	return &driver{options: o, volumes: map[string]int64{}, attached: map[string]bool{}}
}

// run serves until ctx is done.
func (d *driver) run(ctx context.Context) error {
	listener, err := listen(d.endpoint)
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(record))
	csi.RegisterIdentityServer(server, d)
	csi.RegisterControllerServer(server, d)
	csi.RegisterNodeServer(server, d)
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	return server.Serve(listener)
}

// call is the format of calls in the log.
type call struct {
	Method    string
	Request   any
	Response  any
	Error     string
	FullError *fullError
}

type fullError struct {
	Code    uint32 `json:"code"`
	Message string `json:"message"`
}

func record(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	response, err := handle(ctx, request)
	c := call{Method: info.FullMethod, Request: request, Response: response}
	if err != nil {
		c.Error = err.Error()
		c.FullError = &fullError{Code: uint32(status.Code(err)), Message: status.Convert(err).Message()}
	}
	line, bad := json.Marshal(c)
	if bad != nil {
		return nil, fmt.Errorf("record %s: %w", info.FullMethod, bad)
	}
	fmt.Fprintf(os.Stderr, "gRPCCall: %s\n", line)
	return response, err
}

func (d *driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: d.name, VendorVersion: "stand-in"}, nil
}

func (d *driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

func (d *driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	services := []csi.PluginCapability_Service_Type{csi.PluginCapability_Service_CONTROLLER_SERVICE}
	if d.topology {
		services = append(services, csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS)
	}
	answer := &csi.GetPluginCapabilitiesResponse{}
	for _, service := range services {
		answer.Capabilities = append(answer.Capabilities, &csi.PluginCapability{
			Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: service}}})
	}
	return answer, nil
}

// topologyOfNode is the accessible topology of volumes, nil without -enable-topology.
func (d *driver) topologyOfNode() *csi.Topology {
	if !d.topology {
		return nil
	}
	return &csi.Topology{Segments: map[string]string{topologyKey: d.node}}
}
