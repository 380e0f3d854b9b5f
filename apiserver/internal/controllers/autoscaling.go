package controllers

import (
	"context"
	"fmt"
	"time"

	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	podmetrics "k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	resourceclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	"k8s.io/metrics/pkg/client/custom_metrics"
	"k8s.io/metrics/pkg/client/external_metrics"
)

// The defaults of kube-controller-manager.
const (
	autoscalerSync, downscaleStabilization = 15 * time.Second, 5 * time.Minute
	cpuInitialization, initialReadiness    = 5 * time.Minute, 30 * time.Second
	autoscalerTolerance                    = 0.1
)

// podAutoscaler returns the controller of HorizontalPodAutoscalers. Metrics other than CPU and memory come from
// groups that no one serves here.
func (w *Workloads) podAutoscaler(ctx context.Context) (runner, error) {
	mapper := w.mapper()
	scales, err := w.scales(mapper)
	if err != nil {
		return nil, fmt.Errorf("create autoscaler: %w", err)
	}
	resources, err := resourceclient.NewForConfig(w.config)
	if err != nil {
		return nil, fmt.Errorf("create autoscaler: %w", err)
	}
	external, err := external_metrics.NewForConfig(w.config)
	if err != nil {
		return nil, fmt.Errorf("create autoscaler: %w", err)
	}
	custom := custom_metrics.NewForConfig(w.config, mapper, custom_metrics.NewAvailableAPIsGetter(w.client.Discovery()))
	return podautoscaler.NewHorizontalController(ctx, w.client.CoreV1(), scales, w.client.AutoscalingV2(), mapper,
		podmetrics.NewRESTMetricsClient(resources, custom, external), w.shared.Autoscaling().V2().HorizontalPodAutoscalers(), w.shared.Core().V1().Pods(),
		autoscalerSync, downscaleStabilization, autoscalerTolerance, cpuInitialization, initialReadiness).Run, nil
}
