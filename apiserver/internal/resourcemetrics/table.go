package resourcemetrics

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/metrics/pkg/apis/metrics"
)

// usageColumns are those of metrics-server.
var usageColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name of the resource"},
	{Name: "cpu", Type: "string", Format: "quantity"},
	{Name: "memory", Type: "string", Format: "quantity"},
	{Name: "Window", Type: "string", Format: "duration"},
}

// ConvertToTable implements rest.TableConvertor.
func (noStore) ConvertToTable(_ context.Context, object, _ runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{ColumnDefinitions: usageColumns}
	add := func(name string, usage corev1.ResourceList, over time.Duration, row runtime.Object) {
		table.Rows = append(table.Rows, metav1.TableRow{
			Cells:  []any{name, usage.Cpu().String(), usage.Memory().String(), duration.HumanDuration(over)},
			Object: runtime.RawExtension{Object: row},
		})
	}
	addPod := func(m *metrics.PodMetrics) {
		sum := corev1.ResourceList{}
		for _, c := range m.Containers {
			for name, quantity := range c.Usage {
				quantity.Add(sum[name])
				sum[name] = quantity
			}
		}
		add(m.Name, sum, m.Window.Duration, m)
	}
	switch m := object.(type) {
	case *metrics.NodeMetrics:
		add(m.Name, m.Usage, m.Window.Duration, m)
	case *metrics.NodeMetricsList:
		for i := range m.Items {
			add(m.Items[i].Name, m.Items[i].Usage, m.Items[i].Window.Duration, &m.Items[i])
		}
	case *metrics.PodMetrics:
		addPod(m)
	case *metrics.PodMetricsList:
		for i := range m.Items {
			addPod(&m.Items[i])
		}
	}
	return table, nil
}
