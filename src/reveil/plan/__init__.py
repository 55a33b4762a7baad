from reveil.base.compiled import forget_stale_code

forget_stale_code()
