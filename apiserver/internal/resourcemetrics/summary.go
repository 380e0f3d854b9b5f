package resourcemetrics

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

const (
	// readLimit is the deadline of one request to the kubelet.
	readLimit = 5 * time.Second
	// maxSummary is more than the statistics of all pods of a node.
	maxSummary = 16 << 20
)

// Kubelet reads the statistics of a kubelet.
type Kubelet struct {
	// Transport connects to the kubelet, and authenticates this program.
	Transport http.RoundTripper
}

// read returns the CPU and memory of the node and its pods.
func (k Kubelet) read(ctx context.Context, node *corev1.Node) (*stats.Summary, error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	address := url.URL{
		Scheme: "https", Path: "/stats/summary", RawQuery: "only_cpu_and_memory=true",
		Host: net.JoinHostPort(node.Name, strconv.Itoa(int(node.Status.DaemonEndpoints.KubeletEndpoint.Port))),
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("read statistics of kubelet: %w", err)
	}
	answer, err := k.Transport.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("read statistics of kubelet: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read statistics of kubelet: %s", answer.Status)
	}
	var summary stats.Summary
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxSummary)).Decode(&summary); err != nil {
		return nil, fmt.Errorf("read statistics of kubelet: %w", err)
	}
	return &summary, nil
}
