// Package fakekernel has the cgroups and mounts of a simulated machine, for tests that run the whole
// agent. They outlive the agent, as those of a kernel do.
//
//	kernel := fakekernel.New()
//	surroundings.Surroundings{Cgroups: …, PodCgroups: …, Mounter: kernel.View(nil)}
package fakekernel
