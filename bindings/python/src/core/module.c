// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/* The module itself */
#include "binding.h"

#define CONSTANT(name)	{ #name, TP4_##name }
static const struct {
	const char *name;
	long value;
} constants[] = {
	CONSTANT(META_CSUM),
	CONSTANT(META_CSUM_CRC32C),
	CONSTANT(META_GSO),
	CONSTANT(META_TUNNEL),
	CONSTANT(META_RX_TS_SOFTWARE),
	CONSTANT(META_RX_TS_HARDWARE),
	CONSTANT(META_RX_CSUM_VALID),
	CONSTANT(META_RX_HASH),
	CONSTANT(META_RX_VLAN),
	CONSTANT(META_TX_LAUNCH),
};

static struct PyModuleDef module_def = {
	PyModuleDef_HEAD_INIT,
	.m_name = "tpacket4._core",
	.m_doc = "Rings of Linux packet sockets: AF_PACKET V4",
	.m_size = -1,
};

PyMODINIT_FUNC PyInit__core(void)
{
	PyObject *version, *module = PyModule_Create(&module_def);
	size_t i;

	if (!module)
		return NULL;
	for (i = 0; i < sizeof(constants) / sizeof(constants[0]); i++)
		if (PyModule_AddIntConstant(module, constants[i].name,
					    constants[i].value))
			goto fail;
	version = PyUnicode_FromFormat("%d.%d", TP4_VERSION_MAJOR,
				       TP4_VERSION_MINOR);
	if (PyModule_AddObjectRef(module, "LIBRARY_VERSION", version))
		goto fail;
	Py_DECREF(version);
	if (add_packet_types(module) || add_socket_types(module))
		goto fail;
	return module;

fail:
	Py_DECREF(module);
	return NULL;
}
