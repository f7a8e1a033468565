// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)

package tpacket4

// Numbers that the package syscall lacks
const (
	sysMemfdCreate = 319
	sysPpoll       = 271
)
