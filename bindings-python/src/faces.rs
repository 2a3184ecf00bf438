//! Both faces of a class of the core, blocking and for asyncio, from one description.

/// Makes the two classes. A verb is written once, with its arguments and the core's call. The blocking class
/// waits for the answer without the GIL; the one for asyncio takes the loop's bridge and a future of the loop,
/// and returns the number with which the call can be cancelled.
macro_rules! faces {
    (
        $(#[$doc:meta])*
        $blocking:ident($core:ty), $aio:ident($aio_core:ty);
        both { $($both:tt)* }
        verbs { $(fn $verb:ident($($arg:ident: $type:ty),*) |$it:ident| $work:expr;)* }
        blocking { $($own:tt)* }
        aio { $($aio_own:tt)* }
    ) => {
        $(#[$doc])*
        #[pyclass(frozen, weakref)]
        pub(crate) struct $blocking(pub(crate) $core);

        #[pymethods]
        #[allow(clippy::too_many_arguments, reason = "one for each option")]
        impl $blocking {
            $($both)*

            $(fn $verb(&self, py: Python<'_>, $($arg: $type),*) -> PyResult<Py<PyAny>> {
                let $it = &self.0;
                let answer = $crate::call::call(py, move || $work)?;
                $crate::results::IntoPython::into_python(answer, py)
            })*

            $($own)*
        }

        $(#[$doc])*
        #[pyclass(frozen, weakref)]
        pub(crate) struct $aio(pub(crate) $aio_core);

        #[pymethods]
        #[allow(clippy::too_many_arguments, reason = "one for each option")]
        impl $aio {
            $($both)*

            $(fn $verb(
                &self,
                bridge: &Bound<'_, $crate::bridge::Bridge>,
                future: Py<PyAny>,
                $($arg: $type),*
            ) -> PyResult<u64> {
                let $it = self.0.clone();
                bridge.get().start(future, async move { $work.await })
            })*

            $($aio_own)*
        }
    };
}

pub(crate) use faces;
