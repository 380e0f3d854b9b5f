// Package metrics shows what the agent measures in the form that Prometheus reads, under
// the reference kubelet's names. Packages measure with the instruments of package meter;
// here they are made. What can be read when somebody asks is read then, not counted along.
package metrics
